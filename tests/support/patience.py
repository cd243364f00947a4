"""How much longer than asked for a wait may take in a test."""

from __future__ import annotations

SLACK = 5.0
"""Seconds that a busy machine may add: less than any other wait it could be taken for."""
