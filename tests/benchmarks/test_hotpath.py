"""What a hot request takes of Python does not grow unseen."""

from __future__ import annotations

import pytest

from benchmarks import hotpath
from benchmarks.measure import LoadFailed
from benchmarks.workloads import SMALL, Workload


@pytest.mark.parametrize("workload", hotpath.LIMITS, ids=lambda one: one.name)
def test_a_request_takes_no_more_calls_and_writes_than_promised(workload: Workload) -> None:
    cost = hotpath.measure(workload, rounds=1)
    assert 100 < cost.calls <= hotpath.LIMITS[workload]
    assert cost.writes == hotpath.WRITES[workload]
    assert cost.cpu_us > 0


def test_a_request_that_fails_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hotpath, "_reply", lambda workload: [b"HTTP/1.1 200 OK\r\n", b"\xff"])
    with pytest.raises(LoadFailed, match="malformed reply"):
        hotpath.measure(SMALL, rounds=1)
