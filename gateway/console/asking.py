"""One question to one arm, as a client would put it, and when each part of the answer came."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import httpx

from gateway.clients.known import OTHER
from gateway.clients.profile import Profile
from gateway.clients.setup import Target
from gateway.clients.trial import trial
from gateway.console.answers import text_of
from gateway.protocols.faults import reworded
from gateway.protocols.sse import Reader
from gateway.protocols.tokens import Observer
from gateway.records import Api, Usage

PATIENCE = 600.0
"""Seconds without a byte."""

TOKEN_CHARACTERS = 4
"""Of a token, about."""

_PATHS = {
    Api.CHAT: "/chat/completions",
    Api.MESSAGES: "/v1/messages",
    Api.RESPONSES: "/responses",
}
APIS = tuple(_PATHS)

_WORDS = (
    *("answer", "batch", "bridge", "cloud", "copper", "day", "engine", "field", "glass", "harbour"),
    *("island", "journey", "kernel", "letter", "meadow", "number", "orbit", "paper", "queue"),
    *("river", "stone", "token", "under", "valley", "winter", "yellow", "zenith"),
)


@dataclass(frozen=True, slots=True)
class Question:
    """Attributes:
    key: of a client, not of the admin API.
    longest: tokens of the answer.
    """

    root: str
    key: str = field(repr=False)
    api: Api
    model: str
    prompt: str
    longest: int


@dataclass(slots=True)
class Run:
    """One answer, as far as it has come. Times in milliseconds since the request was sent.

    Attributes:
        marks: when events with something generated came.
        total: when it was over.
        error: why there is no whole answer.
    """

    text: str = ""
    marks: list[float] = field(default_factory=list)
    total: float | None = None
    usage: Usage | None = None
    error: str | None = None

    @property
    def ttft(self) -> float | None:
        return self.marks[0] if self.marks else None

    @property
    def inter_token(self) -> float | None:
        """The median between two events with something generated."""
        gaps = [after - before for before, after in zip(self.marks, self.marks[1:], strict=False)]
        return median(gaps) if gaps else None

    @property
    def whole(self) -> bool:
        return self.total is not None and self.error is None


@dataclass(frozen=True, slots=True)
class Medians:
    """Over the whole answers among several."""

    runs: int
    ttft: float | None
    inter_token: float | None
    total: float | None


def medians(runs: Sequence[Run]) -> Medians:
    whole = [run for run in runs if run.whole]
    return Medians(
        len(whole),
        _median([run.ttft for run in whole]),
        _median([run.inter_token for run in whole]),
        _median([run.total for run in whole]),
    )


def filler(tokens: int, source: random.Random) -> str:
    """About so many tokens of words without meaning; nothing for none."""
    words: list[str] = []
    left = tokens * TOKEN_CHARACTERS
    while left > 0:
        words.append(source.choice(_WORDS))
        left -= len(words[-1]) + 1
    return " ".join(words)


async def ask(
    client: httpx.AsyncClient,
    question: Question,
    arm: str,
    session: str,
    run: Run,
    clock: Callable[[], float],
) -> None:
    """Put the question to an arm and fill in `run` while the answer comes.

    Args:
        session: names the conversation.
    """
    target = Target(question.root, question.key, question.model)
    request = trial(_profile(question.api), target, question.prompt, question.longest)
    headers = request.headers | {"x-gateway-arm": arm, "x-session-id": session}
    sent = clock()
    try:
        async with client.stream(
            "POST", request.url, headers=headers, json=request.body,
            timeout=httpx.Timeout(10, read=PATIENCE),
        ) as reply:  # fmt: skip
            if reply.status_code == 200:
                await _read(question.api, reply, run, lambda: (clock() - sent) * 1000)
            else:
                run.error = _refusal(reply.status_code, await reply.aread())
    except httpx.HTTPError as error:
        run.error = f"The connection to the gateway failed: {error!r}"
    run.total = (clock() - sent) * 1000


async def _read(api: Api, reply: httpx.Response, run: Run, passed: Callable[[], float]) -> None:
    reader, observer = Reader(), Observer(api)
    async for chunk in reply.aiter_raw():
        for event in reader.feed(chunk):
            seen = observer.feed(event)
            if seen.error:
                run.error = reworded(api, 200, event.data).error.message
                return
            run.usage = seen.usage or run.usage
            if seen.token:
                run.marks.append(passed())
                run.text += text_of(api, event.data)
    if not run.marks:
        run.error = "The stream ended without a word."


def _profile(api: Api) -> Profile:
    return replace(OTHER, api=api, path=_PATHS[api], user_agent="ttft-gateway-console")


def _refusal(status: int, body: bytes) -> str:
    try:
        content: Any = json.loads(body)
        return f"Refused with HTTP {status}: {content['error']['message']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"Refused with HTTP {status}."


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
