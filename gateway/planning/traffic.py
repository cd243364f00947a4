"""What an engine was sent, and what it came to, wherever that is known from."""

from __future__ import annotations

from dataclasses import dataclass

MOST_TOKENS = 100_000_000
"""Of all requests together: a replay holds every one of them, and computes it in steps."""
LONGEST_REQUEST = 10_000_000
"""Tokens of a prompt or of an answer."""
LONGEST_TIME = 1e7
"""Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as far as its time depends on it.

    Attributes:
        at: seconds since the first one; in a closed loop only their order counts.
        prompt: tokens of the prompt, at least 1.
        cached: of those, how many the engine found in its prefix cache.
        output: tokens of the answer, at least 1.
        ttft: measured time to the first token, in seconds; None where it was not.
        tpot: measured mean time of each later token, likewise.
        took: measured time to the end of the answer, likewise, of whole answers too.
    """

    at: float
    prompt: int
    cached: int
    output: int
    ttft: float | None = None
    tpot: float | None = None
    took: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What one engine got, from nothing to nothing.

    Attributes:
        name: what to call it in tables and errors.
        chunk: the engine's `max_num_batched_tokens` at that time.
        requests: in the order of their sending.
        users: of a closed loop; None where requests came at their own times.
    """

    name: str
    chunk: int
    requests: tuple[Request, ...]
    users: int | None = None
