"""Medians over rounds: quotients within a round, differences within a round, failures left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.fleet import DIRECT
from benchmarks.gates import Gate
from benchmarks.measure import CpuSample, FirstByteSample
from benchmarks.report import Results, rows, save


def sample(contender: str, number: int, cpu_us: float) -> CpuSample:
    return CpuSample(contender, "small", number, cpu_us, requests=10, rate=1.0, connections=1)


def test_a_ratio_compares_within_a_round() -> None:
    # The machine was twice as slow in round 1: within each round the gateway costs three times.
    results = Results(
        cpu=[
            sample("nginx", 0, 10.0),
            sample("gateway", 0, 30.0),
            sample("nginx", 1, 20.0),
            sample("gateway", 1, 60.0),
            sample("gateway", 2, 1000.0),  # nginx has no round 2
        ]
    )
    assert results.ratio("gateway", "nginx", "small") == 3.0
    assert results.cpu_us("nginx", "small") == 15.0
    assert results.ratio("gateway", "litellm", "small") is None


def test_added_time_is_beyond_the_direct_one_of_the_same_round() -> None:
    def first_byte(contender: str, number: int, *seconds: float) -> FirstByteSample:
        return FirstByteSample(contender, number, list(seconds))

    results = Results(
        first_byte=[
            first_byte(DIRECT, 0, 0.001, 0.001, 0.001),
            first_byte(DIRECT, 1, 0.003, 0.003, 0.003),
            first_byte("gateway", 0, 0.0015, 0.0015, 0.0015),
            first_byte("gateway", 1, 0.0037, 0.0037, 0.051),
        ]
    )
    median, late = results.added_ms("gateway") or (0.0, 0.0)
    assert median == pytest.approx(0.6)  # of 0.5 and 0.7
    assert late == pytest.approx(49.0)  # 51 ms less the 2 ms of the stub itself
    assert results.contenders() == ["gateway"]


def test_a_failed_workload_is_not_measured() -> None:
    results = Results(cpu=[sample("gateway", 0, 30.0), sample("nginx", 0, 10.0)])
    results.failures["gateway", "small"] = "3 replies were no success"
    assert results.ratio("gateway", "nginx", "small") is None
    assert rows(results)["nginx"]["small"]["times_nginx_by_round"] == [1.0]


def test_the_file_holds_gates_with_their_states(tmp_path: Path) -> None:
    path = tmp_path / "out" / "run.json"
    save(path, {"rounds": 5}, [Gate("leaves", float("inf"), 0.5, "s")])
    kept = json.loads(path.read_text())
    assert kept["rounds"] == 5
    assert kept["gates"][0]["state"] == "not met"
