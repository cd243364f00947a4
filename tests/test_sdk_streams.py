"""The official SDKs where the simulator has nothing to say: tool calls, pings, early leaving."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from anthropic import Anthropic, APIStatusError, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from gateway.records import Api, Outcome
from tests.support.apis import CHAT, DIALECTS, MESSAGES, RESPONSES, Dialect
from tests.support.running import KEY
from tests.support.scripted import chunk, reply
from tests.support.site import Site, answers, both, hangs_up, says, silent, site, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")

USER: Any = [{"role": "user", "content": "Weather in Oslo?"}]
NAME, ARGUMENTS = "weather", {"city": "Oslo", "days": 2}
PIECES = ['{"city": ', '"Oslo", ', '"days": 2}']
PARAMETERS: Any = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
            patch.delenv(name, raising=False)
        async with site(tmp_path_factory.mktemp("sdks"), "protocol") as one:
            yield one


@pytest_asyncio.fixture(loop_scope="module")
async def at(shared: Site) -> Site:
    await shared.it.settle()
    shared.reset()
    return shared


def gpt(at: Site) -> OpenAI:
    return OpenAI(base_url=f"{at.it.url}/v1", api_key=KEY, max_retries=0)


def claude(at: Site) -> Anthropic:
    return Anthropic(base_url=at.it.url, api_key=KEY, max_retries=0)


async def in_thread(use: Callable[[], Any]) -> Any:
    """Have a blocking client call the gateway, which runs in this thread."""
    return await asyncio.to_thread(use)


# Tool calls


def data(*payloads: dict[str, Any]) -> list[bytes]:
    return [b"data: " + json.dumps(one).encode() + b"\n\n" for one in payloads]


def named(*payloads: dict[str, Any]) -> list[bytes]:
    return [b"event: " + one["type"].encode() + b"\n" + data(one)[0] for one in payloads]


def chat_chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }


def chat_call(**function: str) -> dict[str, Any]:
    return chat_chunk({"tool_calls": [{"index": 0, "function": function}]})


CHAT_TOOL = [
    *data(
        chat_chunk({"role": "assistant", "content": None}),
        chat_chunk(
            {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": NAME, "arguments": ""},
                    }
                ]
            }
        ),
        *(chat_call(arguments=piece) for piece in PIECES),
        chat_chunk({}, "tool_calls"),
    ),
    *CHAT.ending[1:],
]
CHAT_TOOL_WHOLE = {
    **CHAT.reply,
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": NAME, "arguments": "".join(PIECES)},
                    }
                ],
            },
        }
    ],
}

MESSAGES_TOOL = [
    MESSAGES.opening[0],
    *named(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": {}},
        },
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in PIECES
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ),
]
MESSAGES_TOOL_WHOLE = {
    **MESSAGES.reply,
    "content": [{"type": "tool_use", "id": "toolu_1", "name": NAME, "input": ARGUMENTS}],
    "stop_reason": "tool_use",
}

_CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": NAME,
    "arguments": "".join(PIECES),
    "status": "completed",
}
_AT = {"item_id": "fc_1", "output_index": 0}
RESPONSES_TOOL_WHOLE = {**RESPONSES.reply, "output": [_CALL]}
RESPONSES_TOOL = [
    RESPONSES.opening[0],
    *named(
        {
            "type": "response.output_item.added",
            "sequence_number": 1,
            "output_index": 0,
            "item": {**_CALL, "arguments": "", "status": "in_progress"},
        },
        *(
            {
                "type": "response.function_call_arguments.delta",
                "sequence_number": 2 + n,
                **_AT,
                "delta": piece,
            }
            for n, piece in enumerate(PIECES)
        ),
        {
            "type": "response.function_call_arguments.done",
            "sequence_number": 5,
            **_AT,
            "name": NAME,
            "arguments": "".join(PIECES),
        },
        {
            "type": "response.output_item.done",
            "sequence_number": 6,
            "output_index": 0,
            "item": _CALL,
        },
        {"type": "response.completed", "sequence_number": 7, "response": RESPONSES_TOOL_WHOLE},
    ),
]


def chat_tool(at: Site, stream: bool) -> tuple[str, Any, str]:
    tools: Any = [{"type": "function", "function": {"name": NAME, "parameters": PARAMETERS}}]
    with gpt(at) as client:
        if stream:
            with client.chat.completions.stream(model="m", messages=USER, tools=tools) as events:
                completion: Any = events.get_final_completion()
        else:
            completion = client.chat.completions.create(model="m", messages=USER, tools=tools)
    (choice,) = completion.choices
    (call,) = choice.message.tool_calls
    return call.function.name, json.loads(call.function.arguments), choice.finish_reason


def messages_tool(at: Site, stream: bool) -> tuple[str, Any, str]:
    tools: Any = [{"name": NAME, "input_schema": PARAMETERS}]
    asked: Any = {"model": "m", "messages": USER, "tools": tools, "max_tokens": 99}
    with claude(at) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                message: Any = events.get_final_message()
        else:
            message = client.messages.create(**asked)
    (block,) = message.content
    return block.name, block.input, message.stop_reason


def responses_tool(at: Site, stream: bool) -> tuple[str, Any, str]:
    tools: Any = [{"type": "function", "name": NAME, "parameters": PARAMETERS, "strict": False}]
    with gpt(at) as client:
        if stream:
            with client.responses.stream(model="m", input="hi", tools=tools) as events:
                response: Any = events.get_final_response()
        else:
            response = client.responses.create(model="m", input="hi", tools=tools)
    (item,) = response.output
    return item.name, json.loads(item.arguments), response.status


TOOLS = {
    "chat": (chat_tool, CHAT_TOOL, CHAT_TOOL_WHOLE, "tool_calls"),
    "messages": (messages_tool, MESSAGES_TOOL, MESSAGES_TOOL_WHOLE, "tool_use"),
    "responses": (responses_tool, RESPONSES_TOOL, RESPONSES_TOOL_WHOLE, "completed"),
    "messages as chat": (messages_tool, CHAT_TOOL, CHAT_TOOL_WHOLE, "tool_use"),
    "responses as chat": (responses_tool, CHAT_TOOL, CHAT_TOOL_WHOLE, "completed"),
}


def chat_only(at: Site, **more: Any) -> None:
    """The backend has no other API."""
    at.configure(backends={"b0": {"url": at.backends[0].url, "apis": ["chat"]}}, **more)


@both
@pytest.mark.parametrize("api", TOOLS)
async def test_a_tool_call(at: Site, api: str, stream: bool) -> None:
    """Its name is generated, so it counts as the first token."""
    use, frames, whole, end = TOOLS[api]
    if api.endswith("as chat"):
        chat_only(at)
    at.play(streams(*frames, pause=0.1) if stream else says(reply(json.dumps(whole).encode())))
    assert await in_thread(lambda: use(at, stream)) == (NAME, ARGUMENTS, end)
    record = await at.record()
    assert record.outcome is Outcome.OK
    asked = json.loads(at.backends[0].requests[0].body)
    assert NAME in json.dumps(asked["tools"])
    if stream:
        line = record.timeline
        assert line.first_byte and line.first_token and line.last_token
        assert 0.03 < line.first_token - line.first_byte < 0.19, "the name is the first token"
        assert line.last_token > line.first_token


# Signs of life, as the SDKs see them


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


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
@pytest.mark.parametrize("where", ["before the first event", "between two tokens"])
async def test_signs_of_life_are_nothing_to_the_sdks(
    at: Site, dialect: Dialect, where: str
) -> None:
    at.configure(keepalive_interval=0.05)
    if where == "before the first event":
        at.play(answers(dialect, delay=0.2))
    else:
        rest = says(*map(chunk, [*dialect.tokens[1:], *dialect.ending, b""]))

        async def later(*arguments: Any) -> None:
            await asyncio.sleep(0.2)
            await rest(*arguments)

        at.play(streams(*dialect.opening, dialect.tokens[0], then=later))
    assert await in_thread(lambda: text_of(at, dialect)) == "ab"
    record = await at.record()
    assert record.outcome is Outcome.OK
    before = where == "before the first event"
    sign = dialect.first_keepalive if before else dialect.keepalive
    withheld = dialect.ending[-2] if dialect.done else b""  # the usage that was not asked for
    signs, odd = divmod(record.bytes_out - len(b"".join(dialect.frames)) + len(withheld), len(sign))
    assert odd == 0 and signs >= 2, "there was no sign of life to pass over"


@pytest.mark.parametrize("dialect", [MESSAGES, RESPONSES], ids=lambda one: one.api)
async def test_signs_of_life_in_a_translated_answer(at: Site, dialect: Dialect) -> None:
    chat_only(at, keepalive_interval=0.05)
    at.play(streams(*CHAT.frames, delay=0.2, pause=0.1))
    assert await in_thread(lambda: text_of(at, dialect)) == "ab"
    record = await at.record()
    assert (record.outcome, record.backend_api) == (Outcome.OK, Api.CHAT)


async def test_a_translated_stream_that_is_cut_raises(at: Site) -> None:
    chat_only(at)
    at.play(streams(*CHAT.opening, *CHAT.tokens, then=hangs_up, pause=0.05))
    with pytest.raises(APIStatusError, match="broke off"):
        await in_thread(lambda: text_of(at, MESSAGES))


# Leaving early


async def test_a_stream_that_is_left_frees_the_backend(at: Site) -> None:
    at.play(streams(*CHAT.opening, *CHAT.tokens, then=silent))
    async with AsyncOpenAI(base_url=f"{at.it.url}/v1", api_key=KEY, max_retries=0) as client:
        chunks = await client.chat.completions.create(model="m", messages=USER, stream=True)
        async for one in chunks:
            if one.choices[0].delta.content:
                break
        await chunks.close()
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), 0.5)
    assert (await at.record()).outcome is Outcome.CLIENT_GONE


async def test_a_message_that_is_left_frees_the_backend(at: Site) -> None:
    at.play(streams(*MESSAGES.opening, *MESSAGES.tokens, then=silent))
    async with (
        AsyncAnthropic(base_url=at.it.url, api_key=KEY, max_retries=0) as client,
        client.messages.stream(model="m", messages=USER, max_tokens=9) as message,
    ):
        async for _ in message.text_stream:
            break
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), 0.5)
    assert (await at.record()).outcome is Outcome.CLIENT_GONE


async def test_a_call_that_is_cancelled_frees_the_backend(at: Site) -> None:
    async with AsyncOpenAI(base_url=f"{at.it.url}/v1", api_key=KEY, max_retries=0) as client:
        call = asyncio.ensure_future(client.responses.create(model="m", input="hi"))
        async with asyncio.timeout(5):
            while not at.backends[0].requests:
                await asyncio.sleep(0.005)
        call.cancel()
        await asyncio.wait_for(at.backends[0].requests[0].left.wait(), 0.5)
    assert (await at.record()).outcome is Outcome.CLIENT_GONE


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
async def test_sdks_that_stop_at_the_last_event_have_the_whole_answer(
    at: Site, dialect: Dialect
) -> None:
    """Whether they wait for the end of the body is their business: it is no departure."""

    async def linger(*arguments: Any) -> None:
        await asyncio.sleep(0.2)
        await says(chunk(b""))(*arguments)

    at.play(streams(*dialect.frames, then=linger))
    assert await in_thread(lambda: text_of(at, dialect)) == "ab"
    assert (await at.record()).outcome is Outcome.OK
