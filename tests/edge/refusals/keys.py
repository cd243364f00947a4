"""Keys that may do less than the one all tests use."""

from __future__ import annotations

POOR = "sk-poor-0123456789abcdefghijkl"
NONE = "sk-none-0123456789abcdefghijkl"
BLIND = "sk-blind-0123456789abcdefghijkl"
