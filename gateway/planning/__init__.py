"""What another chunk size would do: the simulator fitted to measurements, and asked."""
