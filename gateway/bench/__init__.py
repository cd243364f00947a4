"""Load on a gateway or an engine, round by round, and what it measured, arm by arm."""
