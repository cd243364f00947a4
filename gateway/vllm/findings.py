"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

EVERY_VERSION = "every version"


class Severity(StrEnum):
    ERROR = "error"
    """vLLM does not start, or refuses requests."""
    WARNING = "warning"
    """It runs, and almost certainly not as intended."""
    NOTE = "note"
    """It runs as intended; this follows from it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about a configuration.

    Attributes:
        field: the setting at fault, as a path in the configuration (`flags.swap-space`).
        reason: what is so, and what follows.
        versions: the versions of vLLM for which that holds.
        advice: what to try.
        source: where it can be read.
    """

    field: str
    severity: Severity
    reason: str
    versions: str
    advice: str
    source: str
