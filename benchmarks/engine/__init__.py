"""The real engine: vLLM's CPU build with a tiny random model, for tests and for measuring."""
