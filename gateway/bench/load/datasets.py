"""Workloads read from a file: vLLM's data sets, and the sizes of a recorded access log."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from gateway.bench.load import head
from gateway.bench.load.workloads import (
    CHARACTERS_A_TOKEN,
    LONGEST,
    ROUND_TOKENS,
    Talk,
    Workload,
    text,
)
from gateway.errors import GatewayError
from gateway.records import Outcome

T = TypeVar("T")


class _Said(msgspec.Struct):
    value: str = ""


class _Conversation(msgspec.Struct):
    conversations: list[_Said] = []


class _Custom(msgspec.Struct):
    prompt: str
    output_tokens: Annotated[int, msgspec.Meta(ge=0, le=LONGEST)] | None = None


class _Logged(msgspec.Struct):
    """What counts here of a line of the access log."""

    outcome: str = ""
    stream: bool = False
    session: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None

    @property
    def sendable(self) -> bool:
        """A request's head can name its session, and its token counts can be those of one."""
        counts = (self.prompt_tokens, self.cached_tokens, self.completion_tokens)
        return head.fits(self.session) and all(0 <= (count or 0) <= LONGEST for count in counts)


def sharegpt(path: Path, requests: int, output_tokens: int | None) -> Workload:
    """ShareGPT's JSON, as `vllm bench serve` reads it: first turn and the length of its answer.

    Args:
        output_tokens: of each answer; None for about as many as the recorded answer has.

    Raises:
        GatewayError: it is another file.
        OSError: it cannot be read.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[_Conversation])
    except (msgspec.DecodeError, RecursionError) as error:
        raise GatewayError(f"{path.name} is no ShareGPT data set: {error}.") from None
    talks = [
        Talk("", (question.value,), output_tokens or _tokens(answer.value))
        for question, answer, *_ in (
            one.conversations for one in found if len(one.conversations) >= 2
        )
        if question.value and answer.value
    ]
    return _sliced(path, talks, requests)


def custom(path: Path, requests: int, output_tokens: int | None) -> Workload:
    """Lines of JSON with `prompt`, and perhaps `output_tokens`, as vLLM's custom data set has.

    Args:
        output_tokens: of each answer; None for what the line says, or 1.

    Raises:
        GatewayError: it is another file.
        OSError: it cannot be read.
    """
    talks = [
        Talk("", (one.prompt,), output_tokens or one.output_tokens or 1)
        for one in _lines(path, _Custom)
    ]
    return _sliced(path, talks, requests)


def replay(path: Path, requests: int, output_tokens: int | None, seed: int) -> Workload:
    """The sizes of a recorded access log, with texts of our own.

    A session's prompts begin with its earlier ones, and all sessions with the part that the first
    request of theirs found in the cache. So caches meet what they met then.

    Args:
        output_tokens: of each answer; None for as many as were recorded.

    Raises:
        GatewayError: it holds no streamed request that succeeded, with its token counts, or more
            than can be held ready.
        OSError: it cannot be read.
    """
    lines, remark = _replayable(path, requests)
    shared = text(random.Random(f"{seed}/shared"), _characters(max(_shared(lines).values())))

    def talks(number: int) -> Sequence[Talk]:
        return _replayed(lines, shared, f"{seed}/{number}", output_tokens)

    return Workload(talks, remark)


def _replayable(path: Path, requests: int) -> tuple[Sequence[_Logged], str]:
    """The lines that are sent, and what one should know of the others."""
    found = [
        one
        for one in _lines(path, _Logged, growing=True)
        if one.outcome == Outcome.OK and one.stream and one.prompt_tokens
    ]
    lines = [one for one in found if one.sendable]
    left_out = _left_out(path, len(found) - len(lines))
    if not lines:
        nothing = f"{path.name} holds no streamed request that succeeded, with its token counts."
        raise GatewayError(left_out or nothing)
    tokens = sum(line.prompt_tokens or 0 for line in lines[:requests])
    if tokens > ROUND_TOKENS:
        raise GatewayError(
            f"The prompts of {path.name} are {tokens:,} tokens: at most {ROUND_TOKENS:,} are held "
            "ready for a round. Send fewer (--requests)."
        )
    fewer = _fewer(path, len(lines), requests)
    return lines[:requests], " ".join(one for one in (left_out, fewer) if one)


def _left_out(path: Path, count: int) -> str:
    if not count:
        return ""
    lines = "1 line of it was" if count == 1 else f"{count} lines of it were"
    return (
        f"{path.name}: {lines} left out, for control characters in the session, or token counts "
        "that no request has."
    )


def _replayed(
    lines: Sequence[_Logged], shared: str, salt: str, output_tokens: int | None
) -> list[Talk]:
    openings = _shared(lines)
    longest: dict[str, int] = {}
    for place, line in enumerate(lines):
        name = _session(line, place)
        longest[name] = max(longest.get(name, 0), line.prompt_tokens or 0)
    own = {
        name: text(random.Random(f"{salt}/{name}"), _characters(n)) for name, n in longest.items()
    }
    found = []
    for place, line in enumerate(lines):
        name = _session(line, place)
        opening = shared[: _characters(openings[name])]
        rest = max(1, _characters(line.prompt_tokens or 0) - len(opening))
        session = f"bench-{salt}-{line.session}" if line.session else ""
        answer = output_tokens or line.completion_tokens or 1
        found.append(Talk(opening, (own[name][:rest],), answer, session))
    return found


def _shared(lines: Sequence[_Logged]) -> dict[str, int]:
    """By session: tokens that its first request found in the cache, where others had put them."""
    found: dict[str, int] = {}
    for place, line in enumerate(lines):
        found.setdefault(_session(line, place), line.cached_tokens or 0)
    return found


def _session(line: _Logged, place: int) -> str:
    """A request without a session is one of its own."""
    return line.session or f"#{place}"


def _sliced(path: Path, talks: Sequence[Talk], requests: int) -> Workload:
    """The next `requests` of them in each round, from the beginning again where they run out."""
    if not talks:
        raise GatewayError(f"{path.name} holds no prompt.")
    count = min(requests, len(talks))

    def of_round(number: int) -> Sequence[Talk]:
        return [talks[(number * count + n) % len(talks)] for n in range(count)]

    return Workload(of_round, _fewer(path, len(talks), requests) or _repeats(path, talks, count))


def _fewer(path: Path, there: int, requests: int) -> str:
    return f"{path.name} holds {there} requests: a round has no more." if there < requests else ""


def _repeats(path: Path, talks: Sequence[Talk], count: int) -> str:
    rounds = len(talks) // count
    if rounds > 16:
        return ""
    return (
        f"{path.name} is enough for {rounds} round(s), the warm-up among them; in later ones, "
        "prefix caches know its prompts."
    )


def _lines(path: Path, kind: type[T], *, growing: bool = False) -> list[T]:
    """Args:
    growing: somebody may be writing it, so that its last line is none yet without its end.
    """
    decode: Callable[[bytes], T] = msgspec.json.Decoder(kind).decode
    content = path.read_bytes()
    if growing:
        content = content[: content.rfind(b"\n") + 1]
    found = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(decode(line))
        except (msgspec.DecodeError, RecursionError) as error:
            raise GatewayError(f"{path.name}, line {number}: {error}.") from None
    return found


def _tokens(words: str) -> int:
    return max(1, len(words) // CHARACTERS_A_TOKEN)


def _characters(tokens: int) -> int:
    return tokens * CHARACTERS_A_TOKEN
