"""Backends with APIs of their own: what is repaired on the way in, and on the way out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.records import Outcome
from tests.support.apis import CHAT, COMPLETIONS, MESSAGES, RESPONSES, Dialect
from tests.support.scripted import Received, reply
from tests.support.site import Script, Site, answers, refuses, says, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")


def sent(at: Site) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(at.backends[0].requests[-1].body)
    return body


async def test_a_sound_request_travels_untouched(at: Site) -> None:
    at.play(answers(MESSAGES))
    body = b'{ "model":"m",  "max_tokens":16, "messages":[{"role":"user","content":"h\\u0069"}] }'
    await at.client.post(MESSAGES.path, content=body)
    assert at.backends[0].requests[-1].body == body


async def test_a_volatile_line_is_kept_from_the_prompt(at: Site) -> None:
    at.play(answers(MESSAGES))
    system = [{"type": "text", "text": f"x-anthropic-billing-header: cch={n}"} for n in range(2)]
    kept = {"type": "text", "text": "You are Claude Code."}
    for line in system:
        await at.client.post(MESSAGES.path, json={**MESSAGES.request, "system": [line, kept]})
    assert [json.loads(one.body)["system"] for one in at.backends[0].requests] == [[kept]] * 2


async def test_counting_is_repaired_too(at: Site) -> None:
    at.play(says(reply(b'{"input_tokens":3}')))
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    body = {**MESSAGES.request, "tools": tools}
    response = await at.client.post("/v1/messages/count_tokens", json=body)
    assert response.json() == {"input_tokens": 3}
    assert "tools" not in sent(at)


NAMESPACE = {
    "type": "namespace",
    "name": "files",
    "description": "Files.",
    "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}],
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "files__read",
    "arguments": "{}",
    "status": "completed",
}


async def test_tools_of_a_namespace_keep_their_names_for_the_client(at: Site) -> None:
    whole = {**RESPONSES.reply, "output": [CALL]}
    at.play(says(reply(json.dumps(whole).encode())))
    body = {**RESPONSES.request, "tools": [NAMESPACE]}
    response = await at.client.post(RESPONSES.path, json=body)
    assert [tool["name"] for tool in sent(at)["tools"]] == ["files__read"]
    item = response.json()["output"][0]
    assert (item["namespace"], item["name"]) == ("files", "read")


async def test_and_so_within_a_stream(at: Site) -> None:
    added = {"type": "response.output_item.added", "output_index": 0, "item": CALL}
    event = b"event: response.output_item.added\ndata: " + json.dumps(added).encode() + b"\n\n"
    at.play(streams(*RESPONSES.opening, event, *RESPONSES.ending))
    body = {**RESPONSES.streamed, "tools": [NAMESPACE]}
    response = await at.client.post(RESPONSES.path, json=body)
    frames = [frame for frame in response.text.split("\n\n") if "output_item.added" in frame]
    item = json.loads(frames[-1].partition("data: ")[2])["item"]
    assert (item["namespace"], item["name"]) == ("files", "read")
    assert (await at.record()).timeline.first_token is not None


@pytest.mark.parametrize("dialect", [CHAT, COMPLETIONS, MESSAGES], ids=lambda one: one.api)
async def test_a_stream_gets_the_end_it_lacks(at: Site, dialect: Dialect) -> None:
    at.play(streams(*dialect.frames[:-1]))
    response = await at.ask(dialect)
    assert response.text.count("message_stop" if dialect is MESSAGES else "[DONE]") >= 1
    assert response.content.startswith(b"".join(dialect.frames[:-1]))
    assert (await at.record()).outcome is Outcome.OK


@pytest.mark.parametrize("finished", [True, False])
async def test_the_end_of_chat_is_no_end_of_messages(at: Site, finished: bool) -> None:
    ending = MESSAGES.ending[:-1] if finished else []
    at.play(streams(*MESSAGES.opening, *MESSAGES.tokens, *ending, b"data: [DONE]\n\n", pause=0.02))
    response = await at.ask(MESSAGES)
    if finished:
        assert response.content.endswith(MESSAGES.ending[-1])
    else:
        assert "broke off" in MESSAGES.failure(response.content)["message"]


async def test_nor_of_responses(at: Site) -> None:
    done = b"data: [DONE]\n\n"
    at.play(streams(*RESPONSES.opening, *RESPONSES.tokens, done, pause=0.02))
    response = await at.ask(RESPONSES)
    assert RESPONSES.failure(response.content)["code"] == "server_error"
    assert done not in response.content


ERRORS = {
    "flat": b'data: {"object":"error","message":"at 10.0.0.9","type":"X","code":500}\n\n',
    "by its name": b'event: error\ndata: {"message":"at 10.0.0.9"}\n\n',
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("dialect", [MESSAGES, RESPONSES], ids=lambda one: one.api)
async def test_an_error_of_another_form_is_reworded(
    at: Site, dialect: Dialect, error: bytes
) -> None:
    at.play(streams(*dialect.opening, dialect.tokens[0], error, pause=0.02))
    response = await at.ask(dialect)
    assert "10.0.0.9" not in response.text
    assert "failed to answer" in dialect.failure(response.content)["message"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("server_error", "server_error"),
        ("context_length_exceeded", "context_length_exceeded"),
        ("invalid_prompt", "invalid_prompt"),
        ("rate_limit_exceeded", "server_is_overloaded"),
        ("server_is_overloaded", "server_is_overloaded"),
        # The gateway's quota, which is nothing that the client could wait for.
        ("insufficient_quota", "server_error"),
    ],
)
async def test_a_response_that_failed_says_why(at: Site, said: str, told: str) -> None:
    failed = {**RESPONSES.reply, "status": "failed", "error": {"code": said, "message": "no"}}
    event = {"type": "response.failed", "sequence_number": 3, "response": failed}
    frame = b"event: response.failed\ndata: " + json.dumps(event).encode() + b"\n\n"
    at.play(streams(*RESPONSES.opening, frame, pause=0.02))
    assert RESPONSES.failure((await at.ask(RESPONSES)).content)["code"] == told


# The limit of output that a model has for clients that send none

TOO_LONG = (
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
    "(5000 in the messages, 4000 in the completion)."
)


def no_room_for(field: str) -> Script:
    """An engine that refuses a request with a limit of output."""

    async def script(request: Received, writer: Any) -> None:
        limited = field in json.loads(request.body)
        await (refuses("400 Bad Request", TOO_LONG) if limited else answers(RESPONSES))(
            request, writer
        )

    return script


async def test_a_model_s_limit_is_given_to_clients_that_send_none(at: Site) -> None:
    at.play(answers(RESPONSES))
    at.configure(models=at.arms(["b0"], max_output_tokens=4000))
    await at.ask(RESPONSES)
    assert sent(at)["max_output_tokens"] == 4000
    limited = {**RESPONSES.request, "max_output_tokens": 7}
    await at.client.post(RESPONSES.path, json=limited)
    assert sent(at)["max_output_tokens"] == 7


async def test_it_stays_away_where_the_prompt_leaves_no_room_for_it(at: Site) -> None:
    at.play(answers(RESPONSES))
    at.configure(models=at.arms(["b0"], max_output_tokens=4000, context_window=8192))
    await at.client.post(RESPONSES.path, json={**RESPONSES.request, "input": "word " * 3000})
    assert "max_output_tokens" not in sent(at)


async def test_a_prompt_that_was_guessed_too_short_is_sent_again_without_it(at: Site) -> None:
    at.play(no_room_for("max_output_tokens"))
    at.configure(models=at.arms(["b0"], max_output_tokens=4000))
    await at.expect_good(RESPONSES, stream=False)
    limits = [json.loads(one.body).get("max_output_tokens") for one in at.backends[0].requests]
    assert limits == [4000, None]
    record = await at.record()
    assert record.outcome is Outcome.OK and record.tried == ()


async def test_a_limit_of_the_client_s_own_is_never_taken_away(at: Site) -> None:
    at.play(no_room_for("max_output_tokens"))
    at.configure(models=at.arms(["b0"], max_output_tokens=4000))
    body = {**RESPONSES.request, "max_output_tokens": 5000}
    response = await at.client.post(RESPONSES.path, json=body)
    assert response.status_code == 400 and len(at.backends[0].requests) == 1
