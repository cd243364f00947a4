"""The order of events on each API, whole replies, and what the official SDKs make of both."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import openai
import pytest

from gateway.simulator import answer
from tests.simulator.running import Server, serving

TEXT = answer.TEXT[:12]
HELLO = [{"role": "user", "content": "Hello"}]


def unnamed(events: list[str]) -> list[dict[str, Any]]:
    """The events of chat and completions, [DONE] checked and left out."""
    assert events[-1] == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events[:-1]]


def named(events: list[str]) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for event in events:
        name, data = event.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    assert all(name == data["type"] for name, data in found)
    return found


async def test_chat_begins_with_the_role_and_ends_with_the_reason(server: Server) -> None:
    frames = unnamed(
        await server.events("/v1/chat/completions", model="m", messages=HELLO, max_tokens=3)
    )
    choices = [frame["choices"][0] for frame in frames]
    assert [choice["delta"] for choice in choices] == [
        {"role": "assistant", "content": ""},
        {"content": "This"},
        {"content": " tex"},
        {"content": "t wa"},
        {},
    ]
    assert [choice["finish_reason"] for choice in choices] == [None] * 4 + ["length"]
    assert len({frame["id"] for frame in frames}) == 1


async def test_chat_states_usage_only_where_asked(server: Server) -> None:
    body = {"model": "m", "messages": HELLO, "max_tokens": 3}
    plain = unnamed(await server.events("/v1/chat/completions", **body))
    assert not any("usage" in frame for frame in plain)
    asked = unnamed(
        await server.events("/v1/chat/completions", **body, stream_options={"include_usage": True})
    )
    assert len(asked) == len(plain) + 1
    assert asked[-1]["choices"] == []
    assert asked[-1]["usage"] == {
        "prompt_tokens": 12,
        "total_tokens": 15,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


async def test_chat_whole(server: Server) -> None:
    body = {"model": "m", "messages": HELLO, "max_completion_tokens": 3, "max_tokens": 5}
    reply = (await server.post("/v1/chat/completions", **body)).json()
    assert reply["choices"][0]["message"]["content"] == TEXT
    assert reply["usage"]["completion_tokens"] == 3
    assert reply["model"] == "m"


async def test_the_clients_request_id_becomes_the_replys(server: Server) -> None:
    body = {"messages": HELLO, "max_tokens": 1}
    reply = await server.client.post(
        "/v1/chat/completions", json=body, headers={"x-request-id": "abc"}
    )
    assert reply.json()["id"] == "chatcmpl-abc"


async def test_an_answer_ends_by_itself_unless_told_to_go_on() -> None:
    async with serving(answer_tokens=4) as server:
        body = {"messages": HELLO, "max_tokens": 6}
        stopped = (await server.post("/v1/chat/completions", **body)).json()
        cut = (await server.post("/v1/chat/completions", **body, ignore_eos=True)).json()
        endless = (await server.post("/v1/chat/completions", messages=HELLO)).json()
    found = [
        (one["choices"][0]["finish_reason"], one["usage"]["completion_tokens"])
        for one in (stopped, cut, endless)
    ]
    assert found == [("stop", 4), ("length", 6), ("stop", 4)]


async def test_cached_tokens_are_stated_on_each_api(server: Server) -> None:
    long = "x" * 4096
    chat = {"model": "m", "messages": [{"role": "user", "content": long}], "max_tokens": 1}
    first = (await server.post("/v1/chat/completions", **chat)).json()["usage"]
    again = (await server.post("/v1/chat/completions", **chat)).json()["usage"]
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    assert again["prompt_tokens_details"]["cached_tokens"] == 1024
    messages = (await server.post("/v1/messages", **chat)).json()["usage"]
    assert messages["cache_read_input_tokens"] == 1024
    assert messages["input_tokens"] == again["prompt_tokens"] - 1024
    responses = {"model": "m", "input": long, "max_output_tokens": 1}
    usage = (await server.post("/v1/responses", **responses)).json()["usage"]
    assert usage["input_tokens_details"]["cached_tokens"] == 1024
    assert usage["input_tokens"] == again["prompt_tokens"]
    salted = (await server.post("/v1/chat/completions", **chat, cache_salt="s")).json()["usage"]
    assert salted["prompt_tokens_details"]["cached_tokens"] == 0


async def test_completions_begin_with_the_first_token(server: Server) -> None:
    frames = unnamed(await server.events("/v1/completions", prompt="Hello", max_tokens=3))
    choices = [frame["choices"][0] for frame in frames]
    assert [choice["text"] for choice in choices] == ["This", " tex", "t wa"]
    assert [choice["finish_reason"] for choice in choices] == [None, None, "length"]


async def test_completions_echo_the_prompt_in_front(server: Server) -> None:
    body = {"prompt": "Hellö ", "max_tokens": 3, "echo": True}
    frames = unnamed(await server.events("/v1/completions", **body))
    assert frames[0]["choices"][0]["text"] == "Hellö This"
    whole = (await server.post("/v1/completions", **body)).json()
    assert whole["choices"][0]["text"] == "Hellö " + TEXT


async def test_completions_take_token_ids_and_generate_sixteen_by_default(server: Server) -> None:
    reply = (await server.post("/v1/completions", prompt=[0x48656C6C, 0x6FFFFFFF])).json()
    assert (reply["usage"]["prompt_tokens"], reply["usage"]["completion_tokens"]) == (2, 16)


async def test_messages_go_from_start_to_stop_without_a_ping(server: Server) -> None:
    found = named(
        await server.events("/v1/messages", model="m", messages=HELLO, max_tokens=2, system="Be.")
    )
    assert [name for name, _ in found] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert found[0][1]["message"]["usage"]["input_tokens"] == 18
    assert found[2][1]["delta"] == {"type": "text_delta", "text": "This"}
    assert found[5][1]["delta"]["stop_reason"] == "max_tokens"
    assert found[5][1]["usage"] == {
        "input_tokens": 18,
        "output_tokens": 2,
        "cache_read_input_tokens": 0,
    }


async def test_counted_tokens_are_those_a_message_has(server: Server) -> None:
    body = {"model": "m", "messages": HELLO, "tools": [{"name": "look"}]}
    counted = (await server.post("/v1/messages/count_tokens", **body)).json()
    usage = (await server.post("/v1/messages", **body, max_tokens=1)).json()["usage"]
    assert counted == {"input_tokens": usage["input_tokens"]}


async def test_responses_follow_the_order_of_vllm(server: Server) -> None:
    found = named(await server.events("/v1/responses", input="Hello", max_output_tokens=2))
    assert [name.removeprefix("response.") for name, _ in found] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [data["sequence_number"] for _, data in found] == list(range(10))
    last = found[-1][1]["response"]
    assert (last["status"], last["usage"]["output_tokens"]) == ("incomplete", 2)
    assert last["output"][0]["content"][0]["text"] == "This tex"


async def test_only_responses_say_anything_before_the_first_token() -> None:
    async with serving(speed=0.02) as server:
        body = {"model": "m", "input": "Hello", "stream": True}
        async with server.client.stream("POST", "/v1/responses", json=body) as response:
            lines = response.aiter_lines()
            assert await anext(lines) == "event: response.created"
            assert server.engine.metrics.generated_tokens == 0
        for path, field in (
            ("/v1/chat/completions", {"messages": HELLO}),
            ("/v1/messages", {"messages": HELLO, "max_tokens": 9}),
            ("/v1/completions", {"prompt": "Hello"}),
        ):
            request = {"model": "m", "stream": True, **field}
            async with server.client.stream("POST", path, json=request) as response:
                # The head is there long before the engine has computed anything.
                assert response.status_code == 200
                await anext(response.aiter_bytes())
                assert server.engine.metrics.generated_tokens > 0
            server.engine.metrics.generated_tokens = 0
            await server.until(running=0)


async def test_the_openai_sdk_reads_both_of_its_apis(server: Server) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="-") as sdk:
        stream = await sdk.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "Hello"}],
            max_tokens=3,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert text == TEXT
        assert chunks[-1].usage is not None
        events = await sdk.responses.create(
            model="m", input="Hello", max_output_tokens=3, stream=True
        )
        kinds = [event.type async for event in events]
        assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
        whole = await sdk.responses.create(model="m", input="Hello", max_output_tokens=3)
        assert whole.output_text == TEXT


async def test_the_anthropic_sdk_reads_messages(server: Server) -> None:
    async with (
        anthropic.AsyncAnthropic(base_url=server.url, api_key="-") as sdk,
        sdk.messages.stream(
            model="m", max_tokens=3, messages=[{"role": "user", "content": "Hello"}]
        ) as stream,
    ):
        message = await stream.get_final_message()
    block = message.content[0]
    assert block.type == "text"
    assert (block.text, message.stop_reason) == (TEXT, "max_tokens")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/chat/completions", {"messages": HELLO}),
        ("/v1/completions", {"prompt": "Hello", "max_tokens": 100}),
        ("/v1/messages", {"messages": HELLO, "max_tokens": 100}),
        ("/v1/responses", {"input": "Hello"}),
    ],
)
async def test_a_client_that_leaves_ends_its_request(
    path: str, field: dict[str, Any], stream: bool
) -> None:
    async with serving(speed=0.02) as server:
        body = json.dumps({"model": "m", "stream": stream, **field}).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        host, _, port = server.url.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(head.encode() + body)
        await server.until(running=1)
        assert await server.metric("vllm:num_requests_running") == 1
        writer.close()
        await writer.wait_closed()
        await server.until(running=0)
        assert await server.metric("vllm:num_requests_running") == 0
        assert await server.metric("vllm:kv_cache_usage_perc") == 0
        assert await server.metric("vllm:request_success_total", finished_reason="abort") == 1
