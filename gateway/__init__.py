"""TTFT Gateway: one front door for vLLM configurations, timed to the first token."""

__version__ = "0.1.0"
