"""Requests for an engine's own Messages and Responses API, repaired where it would fail on them."""
