"""When a request may go: places on the backends, and the queue in front of them."""
