"""W3C Trace Context: whose trace a request belongs to, and what the backend is told of it.

This runs before each request is answered, so it is plain and takes 6 µs with everything, as long
as OpenTelemetry's propagator takes to read the header; a test holds the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from gateway.records import Trace

Headers = Sequence[tuple[bytes, bytes]]

SAMPLED = 0x01
RANDOM = 0x02
"""The trace id was drawn at random, so that samplers may rely on it (Trace Context, level 2)."""

MAX_MEMBERS = 32

_PARENT = re.compile(
    rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_KEY = rb"[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13}"
_MEMBER = re.compile(rb"(%b)=[ -+\--<>-~]{0,255}[!-+\--<>-~]" % _KEY)


class TraceContexts:
    """Gives each request its span's id, within its caller's trace or in a new one.

    Whether a trace is recorded is its beginner's choice (parent-based sampling); of those that
    begin here, `sample_ratio` are.

    Args:
        sample_ratio: 0 to 1. The trace id decides, by the rule of OpenTelemetry's
            `TraceIdRatioBased`, so that every service with this ratio chooses the same traces.
        random: draws ids. They need not be hard to guess.
    """

    def __init__(self, sample_ratio: float, random: Random) -> None:
        self._bound = round(sample_ratio * 2**64)
        self._bits = random.getrandbits

    def begin(self, headers: Headers) -> tuple[Trace, Headers]:
        """The request's place in a trace, and its headers as the backend gets them.

        Args:
            headers: as received, names in lower case.
        """
        parents: list[bytes] = []
        states: list[bytes] = []
        others: list[tuple[bytes, bytes]] = []
        for header in headers:
            if header[0] == b"traceparent":
                parents.append(header[1])
            elif header[0] == b"tracestate":
                states.append(header[1])
            else:
                others.append(header)
        # Two parents are none: neither of the two senders can be told from the other.
        found = _PARENT.fullmatch(parents[0].strip(b" \t")) if len(parents) == 1 else None
        if found is None or (found[1] == b"00" and found[5] is not None):
            trace = self._new()
        else:
            trace = Trace(
                trace_id=int(found[2], 16),
                span_id=self._bits(64) or 1,
                parent_id=int(found[3], 16),
                flags=int(found[4], 16) & (SAMPLED | RANDOM),
                state=_state(states) if states else "",
            )
        own = (trace.trace_id, trace.span_id, trace.flags)
        others.append((b"traceparent", b"00-%032x-%016x-%02x" % own))
        if trace.state:
            others.append((b"tracestate", trace.state.encode()))
        return trace, others

    def _new(self) -> Trace:
        trace_id = self._bits(128) or 1
        sampled = trace_id & (2**64 - 1) < self._bound
        return Trace(trace_id, self._bits(64) or 1, flags=RANDOM | sampled)


def _state(values: list[bytes]) -> str:
    """All `tracestate` headers as one; empty where one of them breaks the rules."""
    members = [one for part in b",".join(values).split(b",") if (one := part.strip(b" \t"))]
    keys = {match[1] for one in members if (match := _MEMBER.fullmatch(one))}
    if len(keys) != len(members) or len(members) > MAX_MEMBERS:
        return ""
    return b",".join(members).decode()
