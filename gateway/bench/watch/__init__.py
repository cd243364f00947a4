"""Who is looked at while a round runs: engines, GPUs, and this process itself."""
