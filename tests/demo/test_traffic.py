from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from gateway.demo import traffic
from gateway.demo.plan import MODEL
from gateway.simulator import tokenizer


class Seen:
    """A gateway that answers everything, once so many are there together, and notes it."""

    def __init__(self, status: int = 200, together: int = 1) -> None:
        self.sessions: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.at_once = 0
        self._status = status
        self._open = 0
        self._together = together
        self._enough = asyncio.Event()

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self._open += 1
        self.at_once = max(self.at_once, self._open)
        if self._open == self._together:
            self._enough.set()
        await self._enough.wait()
        self._open -= 1
        self.sessions.append(request.headers["x-session-id"])
        self.bodies.append(json.loads(request.content))
        return httpx.Response(self._status, text="data: [DONE]\n\n")


@pytest.fixture(autouse=True)
def quick_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "THINKING", 0.001)


async def drive(seen: Seen, **options: Any) -> traffic.Traffic:
    transport = httpx.MockTransport(seen)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        found = traffic.Traffic(client, **options)
        await found.run()
    return found


async def test_it_sends_as_many_requests_as_asked_and_no_more_at_once() -> None:
    seen = Seen(together=4)
    found = await drive(seen, concurrency=4, limit=30)
    assert found.sent == len(seen.bodies) == 30
    assert seen.at_once == 4


async def test_conversations_share_a_long_prompt_and_nothing_else() -> None:
    seen = Seen()
    await drive(seen, concurrency=2, limit=12)
    systems = {body["messages"][0]["content"] for body in seen.bodies}
    assert len(systems) == 1
    assert len(tokenizer.encode(systems.pop())) == pytest.approx(1600, rel=0.01)
    questions = {body["messages"][-1]["content"] for body in seen.bodies}
    assert len(questions) == 12
    # They differ within the first block: nothing of them is hit by accident.
    assert len({question[:16] for question in questions}) == 12
    assert {len(tokenizer.encode(question)) for question in questions} <= set(range(800, 810))


async def test_a_conversation_has_three_turns_and_its_history() -> None:
    seen = Seen()
    await drive(seen, concurrency=1, limit=7)
    assert seen.sessions == ["demo-1"] * 3 + ["demo-2"] * 3 + ["demo-3"]
    first, second, third = (body["messages"] for body in seen.bodies[:3])
    assert [message["role"] for message in third] == [
        *("system", "user", "assistant", "user", "assistant", "user"),
    ]
    assert third[: len(second)] == second
    assert second[: len(first)] == first


async def test_requests_are_streamed_and_short() -> None:
    seen = Seen()
    await drive(seen, concurrency=1, limit=1)
    body = seen.bodies[0]
    assert (body["model"], body["stream"], body["max_tokens"]) == (MODEL, True, 16)


async def test_failures_do_not_stop_it() -> None:
    seen = Seen(status=503)
    await drive(seen, concurrency=2, limit=6)
    assert len(seen.bodies) == 6
