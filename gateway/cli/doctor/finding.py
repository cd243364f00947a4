"""What a check has to say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """`warning`: it works, or cannot be judged; `error`: some client fails because of it."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing seen.

    Attributes:
        topic: the check's name, as `--only` takes it.
        seen: what is so, as a sentence.
        why: why it matters; empty where all is well.
        fix: the one command, or the one line of a file, that fixes it; empty where all is well.
    """

    topic: str
    severity: Severity
    seen: str
    why: str = ""
    fix: str = ""


class Topic:
    """Words the findings of one topic."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ok(self, seen: str) -> Finding:
        return Finding(self.name, Severity.OK, seen)

    def warning(self, seen: str, why: str, fix: str) -> Finding:
        return Finding(self.name, Severity.WARNING, seen, why, fix)

    def error(self, seen: str, why: str, fix: str) -> Finding:
        return Finding(self.name, Severity.ERROR, seen, why, fix)
