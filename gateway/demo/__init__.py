"""A gateway in front of two simulated engines, with traffic and a live table."""
