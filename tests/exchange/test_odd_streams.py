"""Chat streams as servers other than today's vLLM write them, for clients of the other APIs."""

from __future__ import annotations

import json

import pytest

from gateway.records import NoToken, Outcome, Usage
from tests.exchange.test_translation import translated
from tests.protocols.translate.chat_streams import frame
from tests.support import grammar_messages, grammar_responses
from tests.support.apis import CHAT, RESPONSES, Dialect
from tests.support.scripted import reply
from tests.support.site import Site, both, chat_only, says, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNTS = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
USED = Usage(7, 0, 2)
A, B = frame({"content": "a"}), frame({"content": "b"})
STOP, DONE = frame({}, "stop"), b"data: [DONE]\n\n"
TALE = frame(usage=COUNTS)


def texts(dialect: Dialect, stream: bytes) -> list[str]:
    """The texts of an answer, one a block or item, whose stream is held against its grammar."""
    if dialect is RESPONSES:
        output = grammar_responses.check(stream)["output"]
        return ["".join(part["text"] for part in item["content"]) for item in output]
    found: list[str] = []
    for event in grammar_messages.check(stream):
        if event["type"] == "content_block_start":
            found.append("")
        elif event["type"] == "content_block_delta":
            found[-1] += event["delta"]["text"]
    return found


def ended(one: bytes, by: bytes) -> bytes:
    return one.replace(b"\n", by)


GOOD = {
    "usage in every frame": [
        frame({"role": "assistant", "content": ""}, usage={**COUNTS, "completion_tokens": 0}),
        frame({"content": "a"}, usage={**COUNTS, "completion_tokens": 1}),
        frame({"content": "b"}, "stop", usage=COUNTS),
        TALE,
        DONE,
    ],
    "usage that is empty at last": [frame({"content": "ab"}, usage=COUNTS), STOP, frame(usage={})],
    "a reason to stop with the last text": [A, frame({"content": "b"}, "stop"), TALE, DONE],
    "two reasons to stop": [A, B, STOP, STOP, TALE, DONE],
    "empty reasons before the last": [
        frame({"content": "a"}, ""),
        frame({"content": "b"}, ""),
        STOP,
        TALE,
        DONE,
    ],
    "frames behind the end": [A, B, STOP, TALE, DONE, A, CHAT.error],
    "no end": [A, B, STOP, TALE],
    "no blank line at the end": [A, B, STOP, TALE.rstrip()],
    "spaces around the end": [A, B, STOP, TALE, b"data:  [DONE] \n\n"],
    "CRLF": [ended(one, b"\r\n") for one in (A, B, STOP, TALE, DONE)],
    "CR": [ended(one, b"\r") for one in (A, B, STOP, TALE, DONE)],
    "comments": [b": so\n\n", A, b":\n\n", B, b"\n\n", STOP, TALE, DONE],
    "empty choices": [frame(), A, B, frame(), STOP, TALE, DONE],
    "null content": [frame({"role": "assistant", "content": None}), A, B, STOP, TALE, DONE],
    "byte by byte": [bytes([one]) for one in A + B + STOP + TALE + DONE],
}


@pytest.mark.parametrize("frames", GOOD.values(), ids=GOOD)
@translated
async def test_it_is_one_answer(at: Site, dialect: Dialect, frames: list[bytes]) -> None:
    at.play(chat_only(streams(*frames)))
    response = await at.ask(dialect)
    assert texts(dialect, response.content) == ["ab"]
    record = await at.record()
    assert (record.outcome, record.usage) == (Outcome.OK, USED)


@translated
async def test_an_empty_reason_to_stop_ends_nothing(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(streams(frame({"content": "a"}, ""))))
    response = await at.ask(dialect)
    assert "broke off" in dialect.failure(response.content)["message"]


ENDS = {
    "of another kind": b'data: {"x":1}',
    "of wrong types": b'data: {"choices":[{"index":0,"delta":{"content":["x"]}}]}',
    "cut off": A[:-20],
}


@pytest.mark.parametrize("last", ENDS.values(), ids=ENDS)
@translated
async def test_an_unreadable_end_is_told_at_once(at: Site, dialect: Dialect, last: bytes) -> None:
    at.configure(timeouts={"idle": 3})
    at.play(chat_only(streams(A, last, pause=0.02)))
    response = await at.ask(dialect)
    assert "send the request again" in dialect.failure(response.content)["message"]
    assert (await at.record()).outcome is Outcome.BACKEND_ERROR


@translated
async def test_what_is_broken_behind_the_answer_costs_nothing(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(streams(A, STOP, TALE[:-20], pause=0.02)))
    assert texts(dialect, (await at.ask(dialect)).content) == ["a"]
    assert (await at.record()).outcome is Outcome.OK


@translated
async def test_an_answer_the_server_gave_up_on_is_none(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(streams(A, frame({}, "abort"), DONE, pause=0.02)))
    dialect.failure((await at.ask(dialect)).content)
    assert (await at.record()).outcome is Outcome.BACKEND_ERROR


@translated
async def test_a_piece_of_an_answer_is_kept_from_the_log(at: Site, dialect: Dialect) -> None:
    secret = b'data: {"choices":[{"index":0,"delta":{"content":"my secret"'
    at.play(chat_only(streams(A, secret + b"\n\n", pause=0.02)))
    await at.ask(dialect)
    assert "secret" not in (await at.record()).detail


ERRORS = {
    "its code": b'{"object":"error","message":"no","type":"BadRequestError","code":400}',
    "nothing": b'{"error":"Unexpected endpoint or method."}',
    "its type": b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}',
}


@pytest.mark.parametrize("native", [True, False], ids=["native", "chat"])
@pytest.mark.parametrize("kind", ERRORS)
@both
@translated
async def test_an_error_under_a_status_of_success(
    at: Site, dialect: Dialect, stream: bool, kind: str, native: bool
) -> None:
    script = says(reply(ERRORS[kind]))
    at.play(script if native else chat_only(script))
    response = await at.ask(dialect, stream=stream)
    assert response.status_code == (502 if kind == "nothing" else 400)
    record = await at.record()
    assert record.outcome is (Outcome.BACKEND_ERROR if kind == "nothing" else Outcome.REJECTED)
    assert (record.no_token is None) is not stream


@translated
async def test_an_error_as_the_first_event(at: Site, dialect: Dialect) -> None:
    flat = b'data: {"object":"error","message":"no","type":"X","code":503}\n\n'
    at.play(chat_only(streams(flat, DONE)))
    assert (await at.ask(dialect)).status_code == 503
    assert (await at.record()).no_token is NoToken.BACKEND_ERROR


async def test_a_response_that_failed_is_an_answer(at: Site) -> None:
    failed = {**RESPONSES.reply, "status": "failed", "error": {"code": "x", "message": "y"}}
    failed["usage"] = None
    at.play(says(reply(json.dumps(failed).encode())))
    assert (await at.ask(RESPONSES, stream=False)).json() == failed
