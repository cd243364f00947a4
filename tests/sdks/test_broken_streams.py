"""A stream that breaks off raises in the SDKs, and does not pass for a whole answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic
from openai import OpenAI

from gateway.records import Api, Outcome
from tests.sdks.clients import USER, chat_only, in_thread, text_of
from tests.support.apis import CHAT, DIALECTS, MESSAGES, Dialect
from tests.support.running import KEY, configuration, running
from tests.support.scripted import scripted
from tests.support.site import Site, hangs_up, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
async def test_a_stream_that_breaks_off_does_not_pass_for_a_whole_one(
    no_environment: None, dialect: Dialect, tmp_path: Path
) -> None:
    part = streams(*dialect.opening, dialect.tokens[0], then=hangs_up)
    async with (
        scripted(part) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        seen, failure = await asyncio.to_thread(broken, dialect.api, it.url)
        assert seen == ["a"]
        assert "b0" not in failure and "127.0.0.1" not in failure
        record = await it.record()
        assert record.outcome is Outcome.BACKEND_ERROR
        assert record.error == failure


async def test_a_translated_stream_that_is_cut_raises(at: Site) -> None:
    chat_only(at)
    at.play(streams(*CHAT.opening, *CHAT.tokens, then=hangs_up, pause=0.05))
    with pytest.raises(anthropic.APIStatusError, match="broke off"):
        await in_thread(text_of, at, MESSAGES)


def broken(api: Api, url: str) -> tuple[list[str], str]:
    """The text of a stream and how the SDK tells that it is not all."""
    seen: list[str] = []
    if api is Api.MESSAGES:
        with Anthropic(base_url=url, api_key=KEY, max_retries=0) as claude:
            stream = claude.messages.stream(model="m", messages=USER, max_tokens=9)
            with pytest.raises(anthropic.APIStatusError) as caught, stream as message:
                seen += message.text_stream
            body: Any = caught.value.body
            return seen, body["error"]["message"]
    with OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        if api is Api.RESPONSES:
            with client.responses.stream(model="m", input="hi") as response:
                events: list[Any] = list(response)
            assert events[-1].type == "response.failed"
            seen += [one.delta for one in events if one.type == "response.output_text.delta"]
            return seen, events[-1].response.error.message
        with pytest.raises(openai.APIError) as error:
            if api is Api.CHAT:
                for chunk in client.chat.completions.create(model="m", messages=USER, stream=True):
                    seen += [chunk.choices[0].delta.content or ""]
            else:
                for text in client.completions.create(model="m", prompt="hi", stream=True):
                    seen += [text.choices[0].text]
        return [one for one in seen if one], error.value.message
