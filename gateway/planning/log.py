"""Traffic from the gateway's access log: what each engine was sent, and when."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.errors import GatewayError
from gateway.planning.traffic import LONGEST_REQUEST, LONGEST_TIME, MOST_TOKENS, Request, Traffic

LONGEST_LINE = 2**20

Tokens = Annotated[int, Meta(ge=0, le=LONGEST_REQUEST)]
Milliseconds = Annotated[float, Meta(ge=0, le=LONGEST_TIME * 1000)]


class _Line(msgspec.Struct):
    """What counts here of a line; lines that tell of dropped ones have no `id`."""

    ts: datetime
    id: str = ""
    model: str = ""
    arm: str = ""
    backend: str = ""
    stream: bool = False
    sent_ms: Milliseconds | None = None
    first_token_ms: Milliseconds | None = None
    last_token_ms: Milliseconds | None = None
    done_ms: Milliseconds | None = None
    prompt_tokens: Tokens | None = None
    cached_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None

    @property
    def tokens(self) -> int:
        return (self.prompt_tokens or 0) + (self.completion_tokens or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Attributes:
    engines: the traffic of each; their chunk sizes are not in the log.
    left_out: requests that reached an engine and whose tokens nobody told, or that have none.
    """

    engines: tuple[Traffic, ...]
    left_out: int

    @property
    def requests(self) -> int:
        return sum(len(one.requests) for one in self.engines)


def recorded(path: Path, *, model: str = "", arm: str = "", last: int) -> Recorded:
    """The last requests of a log that reached an engine.

    Args:
        model, arm: only theirs; empty for all.
        last: so many at most.

    Raises:
        GatewayError: a line is none of an access log, none is left, or they have more tokens than
            can be replayed.
        OSError: it cannot be read.
    """
    lines = deque(
        (
            line
            for line in _lines(path)
            if line.backend
            and line.sent_ms is not None
            and model in ("", line.model)
            and arm in ("", line.arm)
        ),
        maxlen=last,
    )
    known = [line for line in lines if line.prompt_tokens and line.completion_tokens]
    if not known:
        raise GatewayError(
            f"{path.name} holds no such request that reached an engine, with its token counts."
        )
    tokens = sum(line.tokens for line in known)
    if tokens > MOST_TOKENS:
        raise GatewayError(
            f"{path.name}: {len(known)} requests have {tokens} tokens, more than the {MOST_TOKENS} "
            "that can be replayed: take fewer with --last, or one --arm."
        )
    by_backend: dict[str, list[_Line]] = {}
    for line in known:
        by_backend.setdefault(line.backend, []).append(line)
    return Recorded(
        engines=tuple(_traffic(name, its) for name, its in by_backend.items()),
        left_out=len(lines) - len(known),
    )


def _lines(path: Path) -> Iterable[_Line]:
    decode = msgspec.json.Decoder(_Line).decode
    with path.open("rb") as file:
        for number, text in enumerate(iter(partial(file.readline, LONGEST_LINE + 1), b""), 1):
            if len(text) > LONGEST_LINE:
                raise GatewayError(
                    f"{path.name}, line {number}: longer than any line of an access log."
                )
            # Somebody may be writing it: its last line is none yet without its end.
            if not text.strip() or not text.endswith(b"\n"):
                continue
            try:
                yield decode(text)
            except (msgspec.DecodeError, RecursionError) as error:
                raise GatewayError(f"{path.name}, line {number}: {error}.") from None


def _traffic(name: str, lines: Iterable[_Line]) -> Traffic:
    # A line is written when its request ends; `ts` is when it came.
    timed = sorted(((_sent(line), line) for line in lines), key=lambda pair: pair[0])
    start = timed[0][0]
    return Traffic(
        name=name, chunk=0, requests=tuple(_request(at - start, line) for at, line in timed)
    )


def _sent(line: _Line) -> float:
    return line.ts.timestamp() + (line.sent_ms or 0.0) / 1000


def _request(at: float, line: _Line) -> Request:
    prompt, output = line.prompt_tokens or 1, line.completion_tokens or 1
    sent, first, last = line.sent_ms or 0.0, line.first_token_ms, line.last_token_ms
    ttft = tpot = None
    # Edited by hand or joined from two: a token before its request was no token's time.
    if line.stream and first is not None and first > sent:
        ttft = (first - sent) / 1000
        if last is not None and last >= first and output > 1:
            tpot = (last - first) / 1000 / (output - 1)
    return Request(
        at=at,
        prompt=prompt,
        cached=min(line.cached_tokens or 0, prompt - 1),
        output=output,
        ttft=ttft,
        tpot=tpot,
        took=_took(line),
    )


def _took(line: _Line) -> float | None:
    # Not to the end of a stream: a client that reads slowly holds that up.
    end = line.done_ms if line.last_token_ms is None else line.last_token_ms
    return None if end is None else max(0.0, end - (line.sent_ms or 0.0)) / 1000
