"""Clients of Messages and Responses before backends that know chat completions only."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.records import Outcome, Usage
from tests.support.apis import CHAT, MESSAGES, RESPONSES, Dialect
from tests.support.scripted import Received, reply
from tests.support.site import (
    Script,
    Site,
    answers,
    both,
    chat_only,
    hangs_up,
    refuses,
    says,
    silent,
    streams,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

translated = pytest.mark.parametrize("dialect", [MESSAGES, RESPONSES], ids=lambda one: one.api)


def events(text: bytes) -> list[dict[str, Any]]:
    """The data of each event of a stream that is named after its data's type."""
    found = []
    for block in text.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        payload = json.loads(data.removeprefix("data: "))
        assert name == f"event: {payload['type']}"
        found.append(payload)
    return found


def said(dialect: Dialect, answer: dict[str, Any]) -> str:
    """The text of a whole answer."""
    if dialect is MESSAGES:
        return "".join(block["text"] for block in answer["content"])
    return "".join(part["text"] for part in answer["output"][0]["content"])


@translated
async def test_a_whole_answer(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(answers(CHAT)))
    response = await at.ask(dialect, stream=False)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert said(dialect, response.json()) == "ab" and response.json()["model"] == "m"
    record = await at.record()
    assert (record.api, record.outcome, record.usage) == (dialect.api, Outcome.OK, Usage(7, 4, 2))


@translated
async def test_a_stream(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(answers(CHAT)))
    response = await at.ask(dialect)
    deltas = [one["delta"] for one in events(response.content) if one["type"][-6:] == "_delta"]
    if dialect is RESPONSES:
        deltas = [one for one in events(response.content) if one["type"][-6:] == ".delta"]
    texts = [one.get("text", one.get("delta")) for one in deltas]
    assert [text for text in texts if text] == ["a", "b"]
    ending = {MESSAGES.api: "message_stop", RESPONSES.api: "response.completed"}
    assert events(response.content)[-1]["type"] == ending[dialect.api]
    record = await at.record()
    assert (record.api, record.outcome, record.usage) == (dialect.api, Outcome.OK, Usage(7, 4, 2))
    timeline = record.timeline
    assert timeline.first_token is not None and timeline.last_token is not None
    assert timeline.first_byte is not None and timeline.first_byte <= timeline.first_token


@translated
async def test_each_token_leaves_when_it_comes(at: Site, dialect: Dialect) -> None:
    first, *rest = [*CHAT.tokens, *CHAT.ending]
    at.play(chat_only(streams(CHAT.opening[0], first, *rest, pause=0.2)))
    body = dialect.streamed
    async with at.client.stream("POST", dialect.path, json=body) as response:
        got = b""
        async for piece in response.aiter_raw():
            got += piece
            if b'"a"' in got:
                break
        assert b'"b"' not in got
        assert not at.records  # it is still under way


@both
@translated
async def test_what_a_backend_lacks_is_remembered(at: Site, dialect: Dialect, stream: bool) -> None:
    at.play(chat_only(answers(CHAT)))
    for _ in range(2):
        assert (await at.ask(dialect, stream=stream)).status_code == 200
    assert [one.target for one in at.backends[0].requests] == [dialect.path, CHAT.path, CHAT.path]
    record = await at.record(2)
    assert record.tried == () and at.backend().circuit.closed


@translated
async def test_all_who_ask_before_it_is_known_are_answered(at: Site, dialect: Dialect) -> None:
    async def play(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.target != CHAT.path:
            await asyncio.sleep(0.1)  # so that every request is under way when the first fails
        await chat_only(answers(CHAT))(request, writer)

    at.play(play)
    replies = await asyncio.gather(*(at.ask(dialect) for _ in range(4)))
    assert [one.status_code for one in replies] == [200] * 4
    assert len(at.backends[0].requests) == 8


@translated
async def test_finding_it_out_takes_no_try_away(at: Site, dialect: Dialect) -> None:
    busy = chat_only(refuses("503 Service Unavailable"))
    at.play(busy, busy, chat_only(answers(CHAT)))
    at.configure(models=at.arms(["b0"], ["b1"], ["b2"]))
    assert (await at.ask(dialect)).status_code == 200
    assert sorted(at.served()) == ["b0", "b0", "b1", "b1", "b2", "b2"]


@translated
async def test_a_model_that_is_not_there_is_no_missing_api(at: Site, dialect: Dialect) -> None:
    at.play(refuses("404 Not Found", "The model `m` does not exist."))
    assert (await at.ask(dialect)).status_code == 502
    assert [one.target for one in at.backends[0].requests] == [dialect.path]
    assert at.backend().offers(dialect.api)


@translated
async def test_a_list_in_the_configuration_is_believed(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(answers(CHAT)))
    backends = {"b0": {"url": at.backends[0].url, "apis": ["chat"]}}
    at.configure(backends=backends)
    assert (await at.ask(dialect)).status_code == 200
    assert [one.target for one in at.backends[0].requests] == [CHAT.path]


@translated
async def test_a_stream_that_is_cut_ends_in_an_error(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(streams(*CHAT.opening, *CHAT.tokens, then=hangs_up)))
    response = await at.ask(dialect)
    assert response.status_code == 200
    assert "broke off" in dialect.failure(response.content)["message"]
    record = await at.record()
    assert record.outcome is Outcome.BACKEND_ERROR
    assert record.usage == Usage(0, 0, 2, exact=False)


@translated
async def test_an_error_within_the_stream(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(streams(*CHAT.opening, *CHAT.tokens, CHAT.error, pause=0.05)))
    response = await at.ask(dialect)
    failure = dialect.failure(response.content)
    assert "10.0.0.9" not in json.dumps(failure)
    assert (await at.record()).outcome is Outcome.BACKEND_ERROR


@translated
async def test_a_stream_without_done_is_complete(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(streams(*CHAT.opening, *CHAT.tokens, *CHAT.ending[:-1])))
    response = await at.ask(dialect)
    last = events(response.content)[-1]["type"]
    assert last in ("message_stop", "response.completed")
    assert (await at.record()).outcome is Outcome.OK


@translated
async def test_signs_of_life_fit_in_with_the_answer(at: Site, dialect: Dialect) -> None:
    enough = asyncio.Event()

    async def late(request: Received, writer: asyncio.StreamWriter) -> None:
        await enough.wait()
        await answers(CHAT)(request, writer)

    at.play(chat_only(late))
    at.configure(keepalive_interval=0.05)
    content = b""
    async with at.client.stream("POST", dialect.path, json=dialect.streamed) as response:
        async for part in response.aiter_raw():
            content += part
            if content.count(b"event:") >= 3:
                enough.set()
    found = events(content)
    kinds = [one["type"] for one in found]
    if dialect is MESSAGES:
        assert kinds[:3] == ["ping"] * 3 and "message_start" in kinds
    else:
        assert kinds[:3] == ["response.created", "response.in_progress", "response.in_progress"]
        assert [one["sequence_number"] for one in found] == list(range(len(found)))
    assert kinds[-1] in ("message_stop", "response.completed")


@both
@translated
async def test_an_answer_that_is_not_chat(at: Site, dialect: Dialect, stream: bool) -> None:
    wrong = streams(b'data: {"x":1}\n\n') if stream else says(reply(b'{"x":1}'))
    at.play(chat_only(wrong))
    response = await at.ask(dialect, stream=stream)
    assert response.status_code == 502
    assert (await at.record()).outcome is Outcome.BACKEND_ERROR


async def test_what_chat_cannot_say_is_refused_with_the_field(at: Site) -> None:
    at.play(chat_only(answers(CHAT)))
    body = {**MESSAGES.request, "tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    body["tool_choice"] = {"type": "tool", "name": "web_search"}
    at.configure(backends={"b0": {"url": at.backends[0].url, "apis": ["chat"]}})
    response = await at.client.post(MESSAGES.path, json=body)
    assert response.status_code == 400
    assert "tool_choice.name" in response.json()["error"]["message"]
    assert at.backend().outstanding == 0 and at.backends[0].requests == []


async def test_what_chat_cannot_say_goes_to_a_backend_with_the_api(at: Site) -> None:
    at.play(answers(CHAT), answers(RESPONSES))
    b0 = {"url": at.backends[0].url, "apis": ["chat"]}
    at.configure(models=at.arms(["b0"], ["b1"]), backends={"b0": b0})
    body = {**RESPONSES.request, "background": True}
    response = await at.client.post(RESPONSES.path, json=body)
    assert response.json() == RESPONSES.reply
    assert at.served() == ["b1"]


async def test_a_failure_is_told_before_what_chat_cannot_say(at: Site) -> None:
    at.play(refuses("503 Service Unavailable"), answers(CHAT))
    b1 = {"url": at.backends[1].url, "apis": ["chat"]}
    at.configure(models=at.arms(["b0"], ["b1"]), backends={"b1": b1})
    response = await at.client.post(RESPONSES.path, json={**RESPONSES.request, "background": True})
    assert response.status_code == 503


async def test_tokens_are_counted_by_the_engines_tokenizer(at: Site) -> None:
    at.play(chat_only(silent, tokenize=says(reply(b'{"count":42,"max_model_len":8192}'))))
    response = await at.client.post("/v1/messages/count_tokens", json=MESSAGES.request)
    assert response.json() == {"input_tokens": 42}
    assert at.backends[0].requests[-1].target == "/tokenize"


async def test_tokens_are_estimated_where_there_is_no_tokenizer(at: Site) -> None:
    at.play(chat_only(silent))
    body = {**MESSAGES.request, "messages": [{"role": "user", "content": "word " * 1000}]}
    response = await at.client.post("/v1/messages/count_tokens", json=body)
    assert response.status_code == 200
    assert 1000 < response.json()["input_tokens"] < 1500
    assert (await at.record()).outcome is Outcome.OK


@pytest.mark.parametrize(
    "tokenizer",
    [refuses("500 Internal Server Error"), refuses("422 X"), says(reply(b'{"tokens":[]}'))],
    ids=["broken", "another API's", "llama.cpp's"],
)
async def test_tokens_are_estimated_where_the_tokenizer_says_nothing(
    at: Site, tokenizer: Script
) -> None:
    at.play(chat_only(silent, tokenize=tokenizer))
    response = await at.client.post("/v1/messages/count_tokens", json=MESSAGES.request)
    assert 5 < response.json()["input_tokens"] < 20
    assert (await at.record()).outcome is Outcome.OK and at.backend().circuit.closed


async def test_an_answer_nobody_keeps_cannot_be_continued(at: Site) -> None:
    at.play(chat_only(answers(CHAT)))
    first = await at.ask(RESPONSES, stream=False)
    body = {**RESPONSES.request, "previous_response_id": first.json()["id"]}
    response = await at.client.post(RESPONSES.path, json=body)
    assert response.status_code == 404
    assert "whole conversation" in response.json()["error"]["message"]
