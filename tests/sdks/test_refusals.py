"""What is refused raises the SDKs' own exception for it, which an error reply chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic

from gateway.records import Outcome
from tests.sdks.clients import NARROW_KEY, SLOW_KEY, USER, Clients
from tests.support.running import KEY

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRONG_KEY = "sk-wrong-0123456789abcdefghijkl"


def chat(clients: Clients, key: str, model: str, stream: bool, body: Any) -> None:
    clients.openai.with_options(api_key=key).chat.completions.create(
        model=model, messages=USER, stream=stream, extra_body=body
    )


def completions(clients: Clients, key: str, model: str, stream: bool, body: Any) -> None:
    clients.openai.with_options(api_key=key).completions.create(
        model=model, prompt="hi", stream=stream, extra_body=body
    )


def responses(clients: Clients, key: str, model: str, stream: bool, body: Any) -> None:
    clients.openai.with_options(api_key=key).responses.create(
        model=model, input="hi", stream=stream, extra_body=body
    )


def messages(clients: Clients, key: str, model: str, stream: bool, body: Any) -> None:
    clients.anthropic.with_options(api_key=key).messages.create(
        model=model, messages=USER, max_tokens=1, stream=stream, extra_body=body
    )


def bearing(clients: Clients, key: str, model: str, stream: bool, body: Any) -> None:
    """As Claude Code does with ANTHROPIC_AUTH_TOKEN."""
    client = Anthropic(base_url=clients.both.it.url, auth_token=key, max_retries=0)
    with client:
        client.messages.create(
            model=model, messages=USER, max_tokens=1, stream=stream, extra_body=body
        )


Ask = Callable[[Clients, str, str, bool, Any], None]


@dataclass(frozen=True)
class Refusal:
    """What is wrong with a request, the SDKs' exception for it, and what it tells."""

    exception: str
    status: int
    says: str
    key: str = KEY
    model: str = "m"
    body: Any = None

    def __str__(self) -> str:
        return f"{self.exception}-{self.status}"


REFUSALS = [
    Refusal("AuthenticationError", 401, "key", key=WRONG_KEY),
    Refusal("NotFoundError", 404, "Models for this key: `m`.", key=NARROW_KEY, model="llama"),
    Refusal("PermissionDeniedError", 403, "`m`", key=NARROW_KEY, model="other"),
    Refusal("BadRequestError", 400, "model", body={"model": 7}),
    Refusal("BadRequestError", 400, "stream", body={"stream": "yes"}),
    Refusal("BadRequestError", 400, "ignore_eos", body={"ignore_eos": "maybe"}),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
@pytest.mark.parametrize("ask", [chat, completions, responses, messages, bearing])
async def test_refusals(clients: Clients, ask: Ask, refusal: Refusal, stream: bool) -> None:
    await refused(clients, ask, refusal, stream)
    record = await clients.both.it.record()
    assert record.outcome is Outcome.REJECTED


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("ask", [chat, completions, responses, messages])
async def test_a_key_over_its_limit(clients: Clients, ask: Ask, stream: bool) -> None:
    """The first of these requests may be the one it has."""
    first = {"authorization": f"Bearer {SLOW_KEY}"}
    body = {"model": "m", "messages": USER, "max_tokens": 1}
    await clients.both.it.client.post("/v1/chat/completions", json=body, headers=first)
    limit = Refusal("RateLimitError", 429, "`slow`", key=SLOW_KEY)
    error = await refused(clients, ask, limit, stream)
    assert 1 <= float(error.response.headers["retry-after"]) <= 60
    assert error.response.headers["x-ratelimit-remaining-requests"] == "0"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("ask", [chat, completions, responses, messages])
async def test_no_backend(clients: Clients, ask: Ask, stream: bool) -> None:
    backend = clients.both.it.gateway.context.table.backends["b0"]
    backend.enabled = False
    try:
        error = await refused(clients, ask, Refusal("InternalServerError", 503, "m"), stream)
    finally:
        backend.enabled = True
    message = error.response.json()["error"]["message"]
    assert "b0" not in message and "127.0.0.1" not in message
    assert (await clients.both.it.record()).outcome is Outcome.BACKEND_ERROR


async def refused(clients: Clients, ask: Ask, refusal: Refusal, stream: bool) -> Any:
    """The exception, which is the SDK's own for it and says what the gateway wants said."""
    sdk: Any = anthropic if ask in (messages, bearing) else openai
    with pytest.raises(getattr(sdk, refusal.exception)) as caught:
        await asyncio.to_thread(ask, clients, refusal.key, refusal.model, stream, refusal.body)
    error: Any = caught.value
    assert error.status_code == refusal.status
    assert refusal.says in error.message
    request_id = error.response.headers["x-request-id"]
    assert request_id == (await clients.both.it.record()).id
    if sdk is openai:
        assert error.request_id == request_id and error.type
    else:
        assert error.body["type"] == "error" and error.body["request_id"] == request_id
    return error
