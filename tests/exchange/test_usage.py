"""What a request is charged to its key, streamed or not, complete or cut."""

from __future__ import annotations

import pytest

from gateway.records import Outcome
from tests.support.apis import CHAT, DIALECTS, MESSAGES, Dialect
from tests.support.site import Site, answers, both, every_api, silent, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")


def tokens_left(at: Site) -> int:
    context = at.gateway.context
    tokens = context.limiter.standing(context.keyring.keys[0]).tokens_left
    assert tokens is not None
    return tokens


@every_api
@both
async def test_real_usage_is_charged(at: Site, dialect: Dialect, stream: bool) -> None:
    """Seven prompt tokens, the cached ones included, and two of the answer."""
    at.play(answers(dialect))
    at.configure(keys=[at.base["keys"][0] | {"tokens_per_minute": 100}])
    response = await at.ask(dialect, stream=stream)
    assert response.headers["x-ratelimit-limit-tokens"] == "100"
    record = await at.record()
    assert record.usage is not None
    assert (record.usage.prompt, record.usage.cached, record.usage.completion) == (7, 4, 2)
    assert 91 <= tokens_left(at) <= 95


@pytest.mark.parametrize("dialect", DIALECTS[:2], ids=lambda one: one.api)
async def test_usage_that_nobody_asked_for_is_charged_and_withheld(
    at: Site, dialect: Dialect
) -> None:
    at.play(answers(dialect))
    at.configure(keys=[at.base["keys"][0] | {"tokens_per_minute": 100}])
    body = {**dialect.request, "stream": True}
    response = await at.client.post(dialect.path, json=body)
    assert b'"usage"' not in response.content
    assert response.content.endswith(dialect.ending[0] + dialect.ending[-1])
    assert 91 <= tokens_left(at) <= 95


@every_api
async def test_a_client_that_leaves_is_charged_for_what_it_got(at: Site, dialect: Dialect) -> None:
    """new-api#4463: the usage was lost when the client left."""
    at.play(streams(*dialect.opening, *dialect.tokens, then=silent))
    at.configure(keys=[at.base["keys"][0] | {"tokens_per_minute": 100}])
    last = dialect.tokens[-1].splitlines()[-1].decode()
    async with at.client.stream("POST", dialect.path, json=dialect.streamed) as response:
        async for line in response.aiter_lines():
            if line == last:
                break
    record = await at.record()
    assert record.outcome is Outcome.CLIENT_GONE
    assert record.usage is not None and not record.usage.exact
    assert record.usage.completion == 2
    prompt = 7 if dialect is MESSAGES else 0  # Messages say so at the beginning
    assert 100 - prompt - 2 <= tokens_left(at) <= 100 - prompt - 1


async def test_a_key_over_its_tokens_waits(at: Site) -> None:
    at.play(answers(CHAT))
    at.configure(keys=[at.base["keys"][0] | {"tokens_per_minute": 10}])
    assert (await at.ask(CHAT)).status_code == 200
    assert (await at.ask(CHAT)).status_code == 200, "one token was left"
    response = await at.ask(CHAT)
    assert response.status_code == 429
    assert response.headers["x-ratelimit-remaining-tokens"] == "0"
    assert 1 <= int(response.headers["retry-after"]) <= 60
    assert "10 tokens (prompt and completion)" in response.text
    assert len(at.backends[0].requests) == 2
