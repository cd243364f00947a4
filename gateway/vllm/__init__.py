"""Pure knowledge of vLLM: its configurations, what is wrong with them, and what engines tell."""
