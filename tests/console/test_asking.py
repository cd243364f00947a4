from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator

import httpx
import pytest

from gateway.console.answers import text_of
from gateway.console.asking import APIS, Medians, Question, Run, ask, filler, medians
from gateway.records import Api
from gateway.simulator import tokenizer


class FakeClock:
    """Goes on by a tenth of a second with every look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.1
        return self.now


class Events(httpx.AsyncByteStream):
    def __init__(self, *events: object) -> None:
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self._events:
            text = event if isinstance(event, str) else json.dumps(event)
            yield f"data: {text}\n\n".encode()


def chat(**delta: str) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta}]}


def said(text: str) -> dict[str, object]:
    delta = {"type": "text_delta", "text": text}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


ANSWERS: dict[Api, list[object]] = {
    Api.CHAT: [chat(role="assistant"), chat(content="One "), chat(content="two"), "[DONE]"],
    Api.MESSAGES: [
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 0}}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "One "},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "two"}},
        {"type": "message_stop"},
    ],
    Api.RESPONSES: [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_text.delta", "delta": "One "},
        {"type": "response.output_text.delta", "delta": "two"},
        {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
    ],
}


async def run_with(reply: httpx.Response, api: Api = Api.CHAT) -> tuple[Run, httpx.Request]:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return reply

    run = Run()
    question = Question("http://gateway", "sk-1", api, "m", "Hello", 32)
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        await ask(client, question, "a", "s-1", run, FakeClock())
    return run, seen[0]


@pytest.mark.parametrize("api", APIS)
async def test_every_api_is_asked_and_read_in_its_own_way(api: Api) -> None:
    run, request = await run_with(httpx.Response(200, stream=Events(*ANSWERS[api])), api)
    assert (run.text, run.error) == ("One two", None)
    assert run.marks == pytest.approx([100, 200])
    assert (run.ttft, run.inter_token, run.total) == pytest.approx((100, 100, 300))
    assert request.headers["x-gateway-arm"] == "a"
    assert request.headers["x-session-id"] == "s-1"
    assert request.headers["authorization"] == "Bearer sk-1"
    body = json.loads(request.content)
    assert (body["model"], body["stream"]) == ("m", True)
    assert 32 in body.values() and "Hello" in request.content.decode()


async def test_a_refusal_is_told_and_not_counted() -> None:
    error = {"error": {"message": "This key may not choose an arm."}}
    run, _ = await run_with(httpx.Response(403, json=error))
    assert run.error == "Refused with HTTP 403: This key may not choose an arm."
    assert not run.whole
    assert (await run_with(httpx.Response(502, text="no")))[0].error == "Refused with HTTP 502."


async def test_a_stream_that_breaks_off_or_is_silent_is_no_answer() -> None:
    broken = Events(chat(content="One"), {"error": {"message": "The engine failed."}})
    run, _ = await run_with(httpx.Response(200, stream=broken))
    assert run.text == "One"
    assert run.error is not None and "failed" in run.error
    assert not run.whole
    silent, _ = await run_with(httpx.Response(200, stream=Events("[DONE]")))
    assert silent.error == "The stream ended without a word."


def test_medians_are_of_whole_answers() -> None:
    runs = [Run(marks=[10.0 * n, 20.0 * n], total=30.0 * n) for n in (1, 2, 9)]
    runs += [Run(marks=[1.0], total=1.0, error="broken"), Run()]
    assert medians(runs) == Medians(3, 20.0, 20.0, 60.0)
    assert medians([]) == Medians(0, None, None, None)


@pytest.mark.parametrize("tokens", [1, 500, 8000])
def test_filler_is_about_as_long_as_asked(tokens: int) -> None:
    text = filler(tokens, random.Random(1))
    assert len(tokenizer.encode(text)) == pytest.approx(tokens, rel=0.02, abs=3)
    assert text == filler(tokens, random.Random(1))
    assert filler(0, random.Random(1)) == ""


def test_reasoning_that_is_named_twice_is_read_once() -> None:
    event = json.dumps(chat(reasoning="Hm", reasoning_content="Hm", content="!")).encode()
    assert text_of(Api.CHAT, event) == "Hm!"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("data", [b"", b"[DONE]", b"[]", b"{}", b'{"choices":[7],"delta":3}'])
def test_what_carries_no_text_gives_none(api: Api, data: bytes) -> None:
    assert text_of(api, data) == ""
