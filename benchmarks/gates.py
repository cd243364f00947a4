"""What the gateway promises about its own cost, checked against what was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

TIE = 1.25
"""Differences of CPU under 25 % cannot be told apart on a shared machine."""


class State(StrEnum):
    """How a gate came out; a tie lies beyond the limit, but too near to tell."""

    MET = "met"
    TIE = "tie"
    NOT_MET = "not met"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Gate:
    """One promise.

    Attributes:
        value: what was measured, None where something it needs was not.
        limit: the most it may be; the least, if `at_least`.
        slack: factor beyond the limit that still counts as a tie.
    """

    name: str
    value: float | None
    limit: float
    unit: str
    at_least: bool = False
    slack: float = 1.0

    @property
    def state(self) -> State:
        """Met, tie, not met or not measured."""
        if self.value is None:
            return State.NOT_MEASURED
        if self.at_least:
            within, near = self.value >= self.limit, self.value * self.slack >= self.limit
        else:
            within, near = self.value <= self.limit, self.value <= self.limit * self.slack
        if within:
            return State.MET
        return State.TIE if near else State.NOT_MET

    def row(self) -> dict[str, Any]:
        """The gate as data, with how it came out."""
        return {
            "name": self.name,
            "state": self.state.value,
            "value": self.value,
            "limit": self.limit,
            "at_least": self.at_least,
            "unit": self.unit,
        }

    def __str__(self) -> str:
        measured = "-" if self.value is None else f"{self.value:.3g}"
        sign = "≥" if self.at_least else "≤"
        return f"{self.state:<12} {self.name:<52} {measured} ({sign} {self.limit:g} {self.unit})"


Ratio = Callable[[str, str, str], float | None]
"""CPU of the first contender as a multiple of the second's, under a workload."""


def of_comparison(contender: str, ratio: Ratio, added_ms: float | None) -> list[Gate]:
    """The gates of the comparison, for one contender.

    Args:
        added_ms: its median added time to first byte, in milliseconds.
    """
    times = "times nginx"
    limits = {"small": 3.0, "burst": 2.0, "paced": 2.5, "big": 3.2}
    router = "times vllm-router"
    return [
        *(
            Gate(f"{contender}: {load}", ratio(contender, "nginx", load), limit, times, slack=TIE)
            for load, limit in limits.items()
        ),
        Gate(f"{contender}: added time to first byte, median", added_ms, 1.0, "ms"),
        Gate(
            f"{contender}: burst, no more than vllm-router",
            *(ratio(contender, "vllm-router", "burst"), 1.0, router),
            slack=TIE,
        ),
        Gate(
            f"{contender}: paced, no worse than a tie with it",
            *(ratio(contender, "vllm-router", "paced"), TIE, router),
        ),
        Gate(
            f"{contender}: small, LiteLLM needs 100 times as much",
            *(ratio("litellm", contender, "small"), 100.0, "times"),
            at_least=True,
            slack=TIE,
        ),
    ]


def failed(gates: list[Gate]) -> bool:
    """Whether any gate is broken beyond a tie; one that was not measured is not."""
    return any(gate.state is State.NOT_MET for gate in gates)
