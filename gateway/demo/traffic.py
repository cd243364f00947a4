"""Conversations that share a long system prompt, as an agent's do.

Each has a session id, a few turns and a history that grows; each turn brings a passage of its
own, which no cache holds. Between turns its user thinks.
"""

from __future__ import annotations

import asyncio
import random

import httpx

from gateway.demo.plan import MODEL

TURNS = 3
ANSWER_TOKENS = 16
THINKING = 0.25
"""Mean seconds between the turns of a conversation, at any speed of the engines: with none, the
processors that simulate would be the bottleneck, not the simulated engines."""

SYSTEM_CHARACTERS = 6400
PASSAGE_CHARACTERS = 3200
"""About 1,600 and 800 tokens at four characters a token."""

WORDS = (
    *("batch", "block", "budget", "cache", "chunk", "context", "decode", "engine", "first"),
    *("head", "key", "latency", "layer", "memory", "model", "prefill", "prefix", "prompt"),
    *("queue", "request", "schedule", "session", "step", "stream", "time", "token", "value"),
)


class Traffic:
    """Sends requests from `concurrency` conversations at a time.

    Args:
        client: with the gateway's address and key.
        limit: requests in all; None for no end.
        seed: of texts and pauses.

    Attributes:
        sent: requests sent so far.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        concurrency: int,
        limit: int | None = None,
        seed: int = 0,
    ) -> None:
        self._client = client
        self._concurrency = concurrency
        self._limit = limit
        self._random = random.Random(seed)
        self._system = _text(self._random, SYSTEM_CHARACTERS)
        self._conversations = 0
        self.sent = 0

    async def run(self) -> None:
        """Send until the limit is reached, or for ever.

        Raises:
            httpx.TransportError: the gateway cannot be reached.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(self._concurrency):
                group.create_task(self._talk())

    async def _talk(self) -> None:
        await self._think()
        while not self._exhausted():
            self._conversations += 1
            await self._conversation(f"demo-{self._conversations}")

    async def _conversation(self, session: str) -> None:
        messages = [{"role": "system", "content": self._system}]
        for _ in range(TURNS):
            if self._exhausted():
                return
            self.sent += 1
            question = f"Request {self.sent}: {_text(self._random, PASSAGE_CHARACTERS)}"
            messages.append({"role": "user", "content": question})
            await self._ask(session, messages)
            messages.append({"role": "assistant", "content": "Noted."})
            await self._think()

    async def _ask(self, session: str, messages: list[dict[str, str]]) -> None:
        body = {"model": MODEL, "messages": messages, "stream": True, "max_tokens": ANSWER_TOKENS}
        headers = {"x-session-id": session}
        async with self._client.stream(
            "POST", "/v1/chat/completions", json=body, headers=headers
        ) as response:
            # What is in it does not matter: the gateway measures, and counts what fails.
            await response.aread()

    async def _think(self) -> None:
        await asyncio.sleep(self._random.expovariate(1 / THINKING))

    def _exhausted(self) -> bool:
        return self._limit is not None and self.sent >= self._limit


def _text(source: random.Random, characters: int) -> str:
    words: list[str] = []
    length = 0
    while length < characters:
        words.append(source.choice(WORDS))
        length += len(words[-1]) + 1
    return " ".join(words)
