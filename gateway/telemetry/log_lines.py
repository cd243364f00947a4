"""What the access log says of a request: in JSON for programs, in short on a terminal.

A line names who asked, where the request went and when each mark was passed. It never holds
content, a key, or the client's own session identifier.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from gateway.records import Outcome, Record, Timeline

LONGEST_REASON = 120
"""Characters of it in a short line; the JSON has it in whole."""


class Form(NamedTuple):
    """What lines look like.

    Attributes:
        line: what is said of a finished request.
        encode: its bytes, and those of the next.
        dropped: what is said of so many requests whose lines are missing.
    """

    line: Callable[[Record], Any]
    encode: Callable[[Any], bytes]
    dropped: Callable[[int], Any]


class Line(msgspec.Struct, gc=False):
    """What the log says of a request, in this order; `*_ms` count from `received`.

    Marks that never came so far, and counts that the backend never told, are null.
    """

    ts: datetime
    id: str
    key: str
    model: str
    requested_model: str
    api: str
    path: str
    stream: bool
    session: str
    session_source: str
    assigned_arm: str
    arm: str
    backend: str
    backend_api: str
    tried: tuple[str, ...]
    forced: bool
    status: int
    outcome: str
    no_token: str | None
    body_complete_ms: float | None
    admitted_ms: float | None
    sent_ms: float | None
    upstream_headers_ms: float | None
    first_byte_ms: float | None
    first_token_ms: float | None
    last_token_ms: float | None
    done_ms: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    usage_exact: bool | None
    bytes_in: int
    bytes_out: int
    error: str
    detail: str


def line(record: Record) -> Line:
    """The line of a finished request."""
    usage = record.usage
    body_complete, admitted, sent, headers, byte, first, last, done = passed(record.timeline)
    return Line(
        ts=datetime.fromtimestamp(record.at, UTC),
        id=record.id,
        key=record.key,
        model=record.model,
        requested_model=record.requested_model,
        api=record.api,
        path=record.path,
        stream=record.stream,
        session=record.session,
        session_source=record.session_source,
        assigned_arm=record.assigned_arm,
        arm=record.arm,
        backend=record.backend,
        backend_api=record.backend_api,
        tried=record.tried,
        forced=record.forced,
        status=record.status,
        outcome=record.outcome,
        no_token=record.no_token,
        body_complete_ms=body_complete,
        admitted_ms=admitted,
        sent_ms=sent,
        upstream_headers_ms=headers,
        first_byte_ms=byte,
        first_token_ms=first,
        last_token_ms=last,
        done_ms=done,
        prompt_tokens=usage.prompt if usage else None,
        cached_tokens=usage.cached if usage else None,
        completion_tokens=usage.completion if usage else None,
        usage_exact=usage.exact if usage else None,
        bytes_in=record.bytes_in,
        bytes_out=record.bytes_out,
        error=record.error,
        detail=record.detail,
    )


def passed(timeline: Timeline) -> list[float | None]:
    """Each mark after `received`, in order, in milliseconds since it; None where it never came."""
    start = timeline.received
    times = (
        timeline.body_complete,
        timeline.admitted,
        timeline.sent,
        timeline.upstream_headers,
        timeline.first_byte,
        timeline.first_token,
        timeline.last_token,
        timeline.done,
    )
    return [None if time is None else round((time - start) * 1000, 3) for time in times]


def marks(timeline: Timeline) -> dict[str, float | None]:
    """Each mark as `NAME_ms` since `received`."""
    names = (f"{name}_ms" for name in timeline.__struct_fields__[1:])
    return dict(zip(names, passed(timeline), strict=True))


def brief(record: Record) -> str:
    """What people look for, with the columns in front whose width is known.

    Of what went wrong it has the beginning of the operator's view, where there is one.
    """
    total = _between(record.timeline.received, record.timeline.done)
    names = (record.api, record.key, record.model, record.arm, record.backend, record.id)
    text = (
        f"{_clock(record.at)} {_status(record):<4} {_ttft(record)} total {total}  "
        f"{' '.join(name or '-' for name in names)}"
    )
    if record.outcome is not Outcome.OK:
        text += f" {record.outcome}"
        reason = record.detail or record.error
        if reason:
            text += f": {_cut(reason)}"
    # An error may quote the client, whose control characters are not for this terminal.
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _status(record: Record) -> str:
    """What came of it where the status does not tell: there is none, or it came too early."""
    if record.outcome is Outcome.CLIENT_GONE:
        return "gone"
    if record.outcome is not Outcome.OK and record.status < 400:
        return "cut"
    return str(record.status)


def _ttft(record: Record) -> str:
    if record.outcome is Outcome.OK and not record.stream:
        return f"{'unstreamed':<15}"
    return f"TTFT {_between(record.timeline.body_complete, record.timeline.first_token)}"


def _cut(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _between(start: float | None, end: float | None) -> str:
    return f"{'-':>8}  " if start is None or end is None else f"{end - start:8.3f} s"


JSON = Form(
    line,
    msgspec.json.Encoder().encode,
    lambda count: {"ts": datetime.now(UTC), "dropped": count},
)
BRIEF = Form(
    brief,
    str.encode,
    lambda count: f"{_clock(time.time())} lines missing: {count}, which came too fast",
)
