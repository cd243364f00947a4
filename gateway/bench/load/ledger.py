"""The exchanges of a round, read once it is over, or earlier where they would fill the memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from gateway.bench.load.client import Exchange
from gateway.bench.load.reading import sample_of
from gateway.bench.load.workloads import Talk
from gateway.bench.results import Sample
from gateway.records import Api

LIMIT = 256 * 1024 * 1024
"""Bytes of replies kept unread; beyond it each finished request has the oldest one read, whose
cost is part of the client's own."""


@dataclass(slots=True)
class _Entry:
    exchange: Exchange
    talk: Talk
    turn: int
    characters: int


class Ledger:
    """Takes exchanges and gives samples.

    Args:
        limit: bytes kept unread.

    Attributes:
        origin: when the round began; set it then.
        count: exchanges taken so far.
        ended: when the last one was over.
    """

    def __init__(self, api: Api, limit: int = LIMIT) -> None:
        self.count = 0
        self.origin = self.ended = 0.0
        self._api = api
        self._limit = limit
        self._unread: deque[_Entry] = deque()
        self._bytes = 0
        self._samples: list[Sample] = []

    def add(self, talk: Talk, turn: int, characters: int, exchange: Exchange) -> None:
        """Take one; its shape is `driver.Done`."""
        self.count += 1
        self.ended = max(self.ended, exchange.ended or exchange.due)
        self._unread.append(_Entry(exchange, talk, turn, characters))
        self._bytes += exchange.size
        if self._bytes > self._limit:
            self._read(self._unread.popleft())

    def samples(self) -> tuple[Sample, ...]:
        """Of all that was added, by when they were due."""
        while self._unread:
            self._read(self._unread.popleft())
        ordered = sorted(self._samples, key=lambda sample: sample.due_ms)
        self._samples.clear()
        return tuple(replace(sample, number=number) for number, sample in enumerate(ordered))

    def _read(self, entry: _Entry) -> None:
        self._bytes -= entry.exchange.size
        self._samples.append(
            sample_of(
                entry.exchange,
                self._api,
                origin=self.origin,
                session=entry.talk.session,
                turn=entry.turn,
                prompt_characters=entry.characters,
            )
        )
