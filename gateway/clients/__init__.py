"""What is known of clients: how each one says which conversation a request belongs to."""
