"""One request's life: attempts at backends, relay of the answer, failover, time limits, cancel."""
