"""The official SDKs' clients of a gateway, and what tests ask of more than one of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from gateway.records import Api, Outcome
from gateway.simulator import answer
from tests.support.apis import Dialect
from tests.support.running import KEY
from tests.support.simulated import Simulated
from tests.support.site import Site

GPT, CLAUDE = "gpt-4o-mini", "claude-local"
TOKENS = 6
TEXT = answer.TEXT[: 4 * TOKENS]
USER: Any = [{"role": "user", "content": "hi"}]

NARROW_KEY = "sk-narrow-0123456789abcdefghijkl"
SLOW_KEY = "sk-slow-0123456789abcdefghijklm"


@dataclass
class Clients:
    """The four clients of a gateway before a simulated engine, with a key for everything."""

    both: Simulated
    openai: OpenAI
    openai_async: AsyncOpenAI
    anthropic: Anthropic
    anthropic_async: AsyncAnthropic

    async def recorded(self, api: Api, *, stream: bool, prompt: int, completion: int) -> None:
        """The gateway has recorded the only request as such."""
        record = await self.both.it.record()
        assert len(self.both.it.records) == 1
        assert (record.api, record.stream, record.outcome) == (api, stream, Outcome.OK)
        assert record.usage is not None and prompt > 0
        assert (record.usage.prompt, record.usage.completion) == (prompt, completion)
        assert (record.timeline.first_token is not None) == stream


async def in_thread(call: Any, *arguments: Any, **options: Any) -> Any:
    """Have a blocking client call the gateway, which runs in this thread."""
    return await asyncio.to_thread(call, *arguments, **options)


def gpt(at: Site) -> OpenAI:
    return OpenAI(base_url=f"{at.it.url}/v1", api_key=KEY, max_retries=0)


def claude(at: Site) -> Anthropic:
    return Anthropic(base_url=at.it.url, api_key=KEY, max_retries=0)


def chat_only(at: Site, **more: Any) -> None:
    """The backend has no other API."""
    at.configure(backends={"b0": {"url": at.backends[0].url, "apis": ["chat"]}}, **more)


def text_of(at: Site, dialect: Dialect) -> str:
    """The text of a stream, by the SDK's own accumulator where it has one."""
    if dialect.api is Api.MESSAGES:
        with claude(at) as client:
            asked: Any = {"model": "m", "messages": USER, "max_tokens": 9}
            with client.messages.stream(**asked) as events:
                return events.get_final_text()
    with gpt(at) as client:
        if dialect.api is Api.RESPONSES:
            with client.responses.stream(model="m", input="hi") as response:
                return response.get_final_response().output_text
        if dialect.api is Api.CHAT:
            with client.chat.completions.stream(model="m", messages=USER) as chat:
                return chat.get_final_completion().choices[0].message.content or ""
        stream = client.completions.create(model="m", prompt="hi", stream=True)
        return "".join(one.choices[0].text for one in stream if one.choices)
