"""What the gateway measured, read from its access log as it grows."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from gateway.records import Outcome

KEPT = 10_000
PERCENTILES = (50, 90, 99)


class Line(msgspec.Struct):
    """The fields of a line of the access log that count here; times in ms since `received`."""

    arm: str = ""
    assigned_arm: str = ""
    outcome: str = ""
    body_complete_ms: float | None = None
    first_token_ms: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None


class ArmTally:
    """One arm's requests.

    Attributes:
        requests: finished, failed ones included.
        errors: those whose outcome was not `ok`.
        ttft: of the latest `KEPT` requests, measured, in real milliseconds.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.ttft: deque[float] = deque(maxlen=KEPT)
        self._prompt_tokens = 0
        self._cached_tokens = 0

    @property
    def cached_share(self) -> float:
        """Cached tokens among all prompt tokens, from 0 to 1."""
        return self._cached_tokens / self._prompt_tokens if self._prompt_tokens else 0.0

    def add(self, line: Line) -> None:
        """Count a request; one that the demo itself broke off is none."""
        if line.outcome == Outcome.CLIENT_GONE:
            return
        self.requests += 1
        self.errors += line.outcome != Outcome.OK
        if line.first_token_ms is not None and line.body_complete_ms is not None:
            self.ttft.append(line.first_token_ms - line.body_complete_ms)
        self._prompt_tokens += line.prompt_tokens or 0
        self._cached_tokens += line.cached_tokens or 0

    def percentiles(self, speed: float) -> dict[str, float | None]:
        """P50, P90 and P99 of the TTFT in milliseconds of the engines' time; None without any."""
        ordered = sorted(self.ttft)
        return {
            f"p{percent}": round(nearest_rank(ordered, percent) * speed, 1) if ordered else None
            for percent in PERCENTILES
        }


class Tally:
    """All arms, from a log that is being written.

    Args:
        arms: their names, in the order to show them.
    """

    def __init__(self, log: Path, arms: Iterable[str]) -> None:
        self.arms = {arm: ArmTally() for arm in arms}
        self._log = log
        self._read = 0
        self._decode = msgspec.json.Decoder(Line).decode

    @property
    def requests(self) -> int:
        return sum(arm.requests for arm in self.arms.values())

    def follow(self) -> None:
        """Take in the lines that were written since the last call."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            new = log.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for text in whole.splitlines():
            line = self._decode(text)
            arm = self.arms.get(line.arm or line.assigned_arm)
            if arm is not None:
                arm.add(line)

    def report(self, speed: float) -> dict[str, Any]:
        """What `--json` writes. Times are measured ones multiplied by `speed`."""
        arms = {
            name: {
                "requests": arm.requests,
                "errors": arm.errors,
                "ttft_ms": arm.percentiles(speed),
                "cached_share": round(arm.cached_share, 4),
            }
            for name, arm in self.arms.items()
        }
        return {"arms": arms, "verdict": None, "simulated": {"speed": speed}}


def nearest_rank(ordered: list[float], percent: float) -> float:
    """The smallest value that at least `percent` of all do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
