"""Traffic from the gateway's access log: what each engine was sent, and when."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from gateway.errors import GatewayError
from gateway.planning.traffic import Request, Traffic


class _Line(msgspec.Struct):
    """What counts here of a line; lines that tell of dropped ones have no `id`."""

    ts: datetime
    id: str = ""
    model: str = ""
    arm: str = ""
    backend: str = ""
    stream: bool = False
    sent_ms: float | None = None
    first_token_ms: float | None = None
    last_token_ms: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Attributes:
    engines: the traffic of each; their chunk sizes are not in the log.
    left_out: requests that reached an engine and whose tokens nobody told.
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
        GatewayError: a line is none of an access log, or none is left.
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
        for number, text in enumerate(file, 1):
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
    ttft = tpot = None
    if line.stream and line.first_token_ms is not None and line.sent_ms is not None:
        ttft = (line.first_token_ms - line.sent_ms) / 1000
        if line.last_token_ms is not None and output > 1:
            tpot = (line.last_token_ms - line.first_token_ms) / 1000 / (output - 1)
    return Request(
        at=at,
        prompt=prompt,
        cached=min(line.cached_tokens or 0, prompt - 1),
        output=output,
        ttft=ttft,
        tpot=tpot,
    )
