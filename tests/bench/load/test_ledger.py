"""Replies are read after the round, unless they would fill the memory."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.bench.load import ledger as ledger_module
from gateway.bench.load.client import Exchange
from gateway.bench.load.ledger import Ledger
from gateway.bench.load.reading import sample_of
from gateway.bench.load.workloads import Talk
from gateway.records import Api
from tests.support.apis import DIALECTS

TALK = Talk("system", ("question",), 1, "s1")
BODY = b"".join(DIALECTS[0].frames)


def exchange(due: float) -> Exchange:
    head = [(b"content-type", b"text/event-stream")]
    return Exchange(
        due,
        ready=due,
        sent=due,
        ended=due + 0.2,
        status=200,
        headers=head,
        reads=[(due + 0.1, BODY)],
    )


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the exchanges that were read were due, in the order of reading."""
    seen: list[float] = []

    def noted(one: Exchange, *arguments: Any, **options: Any) -> object:
        seen.append(one.due)
        return sample_of(one, *arguments, **options)

    monkeypatch.setattr(ledger_module, "sample_of", noted)
    return seen


def filled(limit: int, dues: list[float]) -> Ledger:
    ledger = Ledger(Api.CHAT, limit)
    ledger.origin = 10.0
    for due in dues:
        ledger.add(TALK, 0, 14, exchange(due))
    return ledger


def test_nothing_is_read_before_the_round_is_over(read: list[float]) -> None:
    ledger = filled(10 * len(BODY), [10.0, 11.0, 12.0])
    assert read == []
    assert len(ledger.samples()) == 3


def test_beyond_the_limit_the_oldest_is_read_for_each_that_comes(read: list[float]) -> None:
    ledger = filled(2 * len(BODY), [10.0, 11.0, 12.0, 13.0])
    assert read == [10.0, 11.0]
    assert len(ledger.samples()) == 4


def test_samples_come_by_when_they_were_due_since_the_round_began(read: list[float]) -> None:
    found = filled(0, [12.0, 10.5, 11.0]).samples()
    assert [(one.number, one.due_ms) for one in found] == [(0, 500), (1, 1000), (2, 2000)]
    assert {(one.session, one.prompt_characters, one.ttft_ms) for one in found} == {("s1", 14, 100)}


def test_a_round_ends_with_its_last_reply(read: list[float]) -> None:
    ledger = filled(0, [12.0, 10.5])
    assert (ledger.count, ledger.ended) == (2, 12.2)
