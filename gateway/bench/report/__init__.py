"""A run as people read it: in a terminal, and as a page with charts that needs nothing else."""
