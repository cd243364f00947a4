"""Which arm and backend a request goes to: assignment, balance, health, circuits and weights."""
