"""What is recorded of each exchange: metrics, the access log, and the recent requests."""
