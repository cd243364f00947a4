"""`gateway bench` and `vllm bench serve`, against the same server."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.engine.install import installed, lacking
from benchmarks.engine.versus import FIGURES, Plan, judge, measure

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]


def test_both_tools_run_and_tell_the_same(tmp_path: Path) -> None:
    """On a machine that others use, too, only the direction holds; docs/bench.md has the figures
    of a quiet one."""
    reason = lacking()
    if reason:
        pytest.skip(reason)
    plan = Plan(requests=16, concurrency=4, output_tokens=8, rounds=3)
    found = judge(measure(installed(), tmp_path, plan))
    assert [one.figure for one in found] == list(FIGURES)
    assert all(0.5 < one.ours / one.theirs < 2 for one in found), found
