"""Distributed traces: one span a request, continued from its caller and into the backend."""
