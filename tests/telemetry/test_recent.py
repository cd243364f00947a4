from __future__ import annotations

from collections.abc import Callable

from gateway.records import Record
from gateway.telemetry.recent import Recent


def test_the_oldest_is_forgotten(streamed: Callable[..., Record]) -> None:
    recent = Recent(size=2)
    for name in ("a", "b", "c"):
        recent.add(streamed(id=name))
    assert recent.get("a") is None
    assert [found.id for name in ("b", "c") if (found := recent.get(name))] == ["b", "c"]


def test_of_one_id_the_later_counts(streamed: Callable[..., Record]) -> None:
    recent = Recent(size=2)
    recent.add(streamed(id="a", status=500))
    recent.add(streamed(id="b"))
    recent.add(streamed(id="a", status=200))
    recent.add(streamed(id="c"))
    found = recent.get("a")
    assert found is not None and found.status == 200
    assert recent.get("b") is None


def test_gaps_are_not_kept(streamed: Callable[..., Record]) -> None:
    recent = Recent()
    recent.add(streamed(gaps=(0.1,) * 50_000))
    found = recent.get("req-1")
    assert found is not None and found.gaps == () and found.usage is not None
