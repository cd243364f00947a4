"""Streams that break, before and after the first event, and those that end oddly but whole."""

from __future__ import annotations

import asyncio
import json

import pytest

from gateway.records import NoToken, Outcome, Usage
from tests.support.apis import CHAT, RESPONSES, Dialect
from tests.support.scripted import Received, chunk, reply
from tests.support.site import Script, Site, every_api, hangs_up, says, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")


# Streams that break


def cut(dialect: Dialect, frames: list[bytes]) -> Script:
    return streams(*frames, then=hangs_up)


@every_api
async def test_a_stream_cut_before_its_first_event(at: Site, dialect: Dialect) -> None:
    """The head is held, so there is still a status to answer with."""
    at.play(cut(dialect, []))
    response = await at.ask(dialect)
    assert response.status_code == 502
    assert "broke off" in response.text
    assert (await at.record()).no_token is NoToken.BACKEND_ERROR


@every_api
@pytest.mark.parametrize("end", ["cut", "ended", "half an event"])
async def test_a_stream_cut_after_a_token_ends_with_an_error(
    at: Site, dialect: Dialect, end: str
) -> None:
    """CLIProxyAPI#3055: a stream without its last event passed for a complete answer."""
    sent = dialect.opening + dialect.tokens[:1]
    script = streams(*sent) if end == "ended" else cut(dialect, sent)
    if end == "half an event":
        script = streams(*sent, then=says(chunk(dialect.tokens[1][:-9]), close=True))
    at.play(script)
    response = await at.ask(dialect)
    assert response.status_code == 200
    assert response.content.startswith(b"".join(sent))
    failure = dialect.failure(response.content)
    assert "broke off" in failure["message"]
    rest = response.content.removeprefix(b"".join(sent))
    assert rest.count(b"\n\n") == 1 + len(dialect.done), "half an event was passed on"
    record = await at.record()
    assert (record.outcome, record.no_token) == (Outcome.BACKEND_ERROR, None)
    assert record.usage is not None
    assert (record.usage.completion, record.usage.exact) == (1, False)


@every_api
async def test_an_error_within_a_stream_after_a_token(at: Site, dialect: Dialect) -> None:
    frames = [*dialect.opening, *dialect.tokens[:1], dialect.error, *dialect.done]
    at.play(streams(*frames, pause=0.02))
    response = await at.ask(dialect)
    assert response.status_code == 200
    failure = dialect.failure(response.content)
    assert "failed to answer" in failure["message"]
    assert "10.0.0.9" not in response.text, "the engine's words name its host"
    record = await at.record()
    assert record.outcome is Outcome.BACKEND_ERROR
    assert "10.0.0.9 died" in (await at.line(record))["detail"]


@every_api
async def test_an_error_without_its_blank_line(at: Site, dialect: Dialect) -> None:
    """It is told as what it is: a fault of the request is none of the backend's."""
    error = b'data: {"error":{"message":"too long","type":"BadRequestError","code":400}}'
    at.play(streams(error))
    response = await at.ask(dialect)
    assert response.status_code == 400
    assert "too long" in response.text


@every_api
async def test_what_came_with_an_error_is_not_lost(at: Site, dialect: Dialect) -> None:
    """The last tokens and the error in one read: the client gets the tokens first."""
    at.play(
        streams(*dialect.opening, dialect.tokens[0] + dialect.tokens[1] + dialect.error, pause=0.03)
    )
    response = await at.ask(dialect)
    assert b"".join(dialect.opening + dialect.tokens) in response.content
    dialect.failure(response.content)
    usage = (await at.record()).usage
    assert usage is not None and usage.completion == 2


async def test_the_error_of_a_responses_stream_keeps_its_id(at: Site) -> None:
    """With another id than `response.created` had, the official SDK raises something else."""
    at.play(cut(RESPONSES, RESPONSES.opening))
    response = await at.ask(RESPONSES)
    last = response.text.rstrip().rpartition("data: ")[2]
    payload = json.loads(last)
    assert payload["response"]["id"] == "resp_1"
    assert payload["sequence_number"] == len(RESPONSES.opening)


@every_api
async def test_an_event_without_end_is_cut_off(at: Site, dialect: Dialect) -> None:
    async def endless(request: Received, writer: asyncio.StreamWriter) -> None:
        piece = chunk(b"a" * 2**20)
        while True:
            writer.write(piece)
            await writer.drain()

    at.play(streams(*dialect.opening, b"data: ", then=endless))
    response = await at.ask(dialect)
    assert response.status_code == 200
    assert "cannot be read" in dialect.failure(response.content)["message"]
    assert "longer than 16777216 bytes" in (await at.line(await at.record()))["detail"]


@every_api
async def test_a_whole_answer_where_a_stream_was_asked_for(at: Site, dialect: Dialect) -> None:
    """Passed on, it would look like a stream without a single event: an empty answer."""
    at.play(says(reply(json.dumps(dialect.reply).encode())))
    response = await at.ask(dialect)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert b'"ab"' in response.content and response.content.endswith(b"\n\n")
    record = await at.record()
    assert record.outcome is Outcome.OK and record.timeline.first_token is not None
    assert record.usage == Usage(prompt=7, cached=4, completion=2)


@pytest.mark.parametrize("body", [b"<html>", b'{"id":1}', b"[1]", b'{"choices":[{}]}'])
@every_api
async def test_a_stream_was_asked_for_and_something_else_came(
    at: Site, dialect: Dialect, body: bytes
) -> None:
    kind = "text/html" if body == b"<html>" else "application/json"
    at.play(says(reply(body, headers=f"content-type: {kind}\r\n")))
    response = await at.ask(dialect)
    assert response.status_code == 502
    assert "cannot be read" in response.text
    assert "not an event stream" in (await at.line(await at.record()))["detail"]


# Streams that end oddly, but whole


@every_api
async def test_a_stream_that_is_complete_but_for_its_framing(at: Site, dialect: Dialect) -> None:
    """The last event is through: that the connection then breaks off takes nothing away."""
    at.play(cut(dialect, dialect.frames))
    response = await at.ask(dialect)
    assert response.content == b"".join(dialect.frames)
    assert (await at.record()).outcome is Outcome.OK


@every_api
async def test_a_last_event_without_its_blank_line(at: Site, dialect: Dialect) -> None:
    *frames, last = dialect.frames
    at.play(streams(*frames, last.rstrip(b"\n")))
    response = await at.ask(dialect)
    assert response.content == b"".join(dialect.frames)
    assert (await at.record()).outcome is Outcome.OK


@every_api
async def test_a_stream_without_length_or_chunks(at: Site, dialect: Dialect) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    at.play(says(head + b"".join(dialect.frames), close=True))
    response = await at.ask(dialect)
    assert response.content == b"".join(dialect.frames)
    assert (await at.record()).outcome is Outcome.OK


async def test_a_client_that_leaves_at_the_last_event_has_its_answer(at: Site) -> None:
    """The official OpenAI SDK stops reading at [DONE]; that is no departure."""

    async def linger(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.write(chunk(b""))

    at.play(streams(*CHAT.frames, then=linger))
    async with at.client.stream("POST", CHAT.path, json=CHAT.streamed) as response:
        async for line in response.aiter_lines():
            if line == "data: [DONE]":
                break
    record = await at.record()
    assert record.outcome is Outcome.OK
    assert record.usage is not None and record.usage.exact
    assert at.backend(record.backend).outstanding == 0
