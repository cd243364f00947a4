"""A simulated vLLM engine: pure cores, a virtual-time runner, and vLLM's HTTP surface."""
