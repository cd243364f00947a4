"""What is asked: conversations whose texts depend on the seed and the round alone.

So every arm gets the same requests in a round, and no round repeats another one's questions,
which a prefix cache would know.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

SYSTEM_CHARACTERS = 6400
"""The article's shared prompt of about 1,600 tokens, at four characters a token."""
QUESTION_CHARACTERS = 80
CHARACTERS_A_TOKEN = 4

LONGEST = 10_000_000
"""Tokens of one text: as long as the longest context that any model has."""
ROUND_TOKENS = 500_000_000
"""Tokens of a round's requests, which are all written before it begins: 2 GB."""

_WORDS = (
    *("answer", "batch", "before", "block", "budget", "cache", "change", "chunk", "context"),
    *("decode", "engine", "every", "first", "given", "head", "large", "latency", "layer", "long"),
    *("memory", "model", "never", "other", "prefill", "prefix", "prompt", "queue", "request"),
    *("schedule", "session", "short", "small", "step", "stream", "then", "time", "token", "value"),
)


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation.

    Attributes:
        questions: one a turn.
        session: sent as `X-Session-Id`; empty for none.
    """

    system: str
    questions: tuple[str, ...]
    output_tokens: int
    session: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """Attributes:
    talks: the conversations of a round, given its number.
    remark: what one should know of it, a sentence; empty for nothing.
    """

    talks: Callable[[int], Sequence[Talk]]
    remark: str = ""


def shared_prefix(
    requests: int, output_tokens: int, seed: int, *, prefix: int, question: int, cold: bool
) -> Workload:
    """The article's: one system prompt, and a short question that no other request has.

    Args:
        prefix, question: characters of each.
        cold: another system prompt in each round, so that its first requests find no cache.
    """

    def of_round(number: int) -> Sequence[Talk]:
        system = text(_source(seed, "system", number if cold else 0), prefix)
        source = _source(seed, "questions", number)
        return [
            Talk(system, (f"Question {number}.{n}: {text(source, question)}",), output_tokens)
            for n in range(requests)
        ]

    return Workload(of_round)


def no_shared_prefix(
    requests: int, output_tokens: int, seed: int, *, prefix: int, question: int
) -> Workload:
    """Prompts as long as those of `shared_prefix` that differ from their first words on."""

    def of_round(number: int) -> Sequence[Talk]:
        source = _source(seed, "prompts", number)
        return [
            Talk(f"{number}.{n} {text(source, prefix)}", (text(source, question),), output_tokens)
            for n in range(requests)
        ]

    return Workload(of_round)


def sessions(
    requests: int, output_tokens: int, seed: int, *, turns: int, prefix: int, question: int
) -> Workload:
    """Conversations of `turns` turns, over one system prompt, each with a session id."""

    def of_round(number: int) -> Sequence[Talk]:
        system = text(_source(seed, "system"), prefix)
        source = _source(seed, "sessions", number)
        left, found = requests, []
        for n in count():
            if left <= 0:
                break
            questions = tuple(
                f"Question {number}.{n}.{turn}: {text(source, question)}"
                for turn in range(min(turns, left))
            )
            left -= len(questions)
            session = f"bench-{seed}-{number}-{n}"
            found.append(Talk(system, questions, output_tokens, session))
        return found

    return Workload(of_round)


def text(source: random.Random, characters: int) -> str:
    """Words of about so many characters in all."""
    words: list[str] = []
    length = 0
    while length < characters:
        words.append(source.choice(_WORDS))
        length += len(words[-1]) + 1
    return " ".join(words)


def _source(seed: int, *what: object) -> random.Random:
    """Of texts that must not depend on how much another one was asked for."""
    return random.Random(f"{seed}/{'/'.join(map(str, what))}")
