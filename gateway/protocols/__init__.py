"""What bytes mean: event streams, first tokens, usage, errors of each client API. No I/O."""
