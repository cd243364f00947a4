"""What the engine says of faults reaches clients in their API's form, with what to do."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.engine.prompts import prompt
from benchmarks.engine.serving import CONTEXT, MODEL
from tests.real_engine.lab import Lab, events, on_engine

pytestmark = on_engine

LONG = "x=1\n" * CONTEXT
CHAT, TEXT, MESSAGES, RESPONSES = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/messages",
    "/v1/responses",
)
TOO_LONG: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": LONG}]},
    TEXT: {"prompt": prompt("too long", CONTEXT + 1)},
    MESSAGES: {"messages": [{"role": "user", "content": LONG}], "max_tokens": 4},
    RESPONSES: {"input": LONG},
}
BAD_FIELD: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}], "temperature": "hot"},
    TEXT: {"prompt": "hi", "temperature": "hot"},
    MESSAGES: {"messages": [], "max_tokens": "many"},
    RESPONSES: {"input": "hi", "temperature": "hot"},
}
every_path = pytest.mark.parametrize("path", TOO_LONG)
either_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def fault(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The error of a reply in the form of its API."""
    if path == MESSAGES:
        assert body["type"] == "error" and body["request_id"].startswith("req_")
    error: dict[str, Any] = body["error"]
    assert isinstance(error, dict)
    return error


@either_way
@every_path
async def test_a_prompt_beyond_the_context(site: Lab, path: str, stream: bool) -> None:
    body = {"model": "m@a", "stream": stream, **TOO_LONG[path]}
    reply = await site.client.post(path, json=body)
    assert reply.status_code == 400
    error = fault(path, reply.json())
    if path == MESSAGES:
        # The words by which Claude Code knows that it has to compact.
        assert error["message"] == f"prompt is too long: {CONTEXT + 1} tokens > {CONTEXT} maximum"
    else:
        assert error["code"] == "context_length_exceeded"
        assert f"maximum context length is {CONTEXT} tokens" in error["message"]


async def test_codex_is_told_in_a_stream(site: Lab) -> None:
    """It would send the request again and again after a status 400."""
    body = {"model": "m@a", "stream": True, **TOO_LONG[RESPONSES]}
    headers = {"user-agent": "codex_exec/0.171.0", "originator": "codex_exec"}
    reply = await site.client.post(RESPONSES, json=body, headers=headers)
    assert reply.status_code == 200
    error = events(reply.text)[-1]["response"]["error"]
    assert error["code"] == "context_length_exceeded"


@every_path
async def test_a_field_of_a_wrong_type_is_named(site: Lab, path: str) -> None:
    reply = await site.client.post(path, json={"model": "m@a", **BAD_FIELD[path]})
    assert reply.status_code == 400
    error = fault(path, reply.json())
    named = "max_tokens" if path == MESSAGES else "temperature"
    assert error["message"].startswith(f"{named}: Input should be a valid")
    assert path == MESSAGES or error["param"] == named


async def test_a_locked_engine_says_so_in_a_word(site: Lab) -> None:
    body = {"model": MODEL, "prompt": "hi", "max_tokens": 1}
    headers = {"authorization": "Bearer sk-wrong"}
    reply = await site.engines["b"].post(TEXT, json=body, headers=headers)
    assert (reply.status_code, reply.json()) == (401, {"error": "Unauthorized"})


@every_path
async def test_the_gateways_own_wrong_key_is_the_operators_affair(site: Lab, path: str) -> None:
    """A client that read 401 would think that its key was meant, and ask its user for another."""
    fine = {**BAD_FIELD[path]} | ({"max_tokens": 4} if path == MESSAGES else {"temperature": 0})
    reply = await site.client.post(path, json={"model": "locked", **fine})
    assert reply.status_code == 502
    assert "operator" in fault(path, reply.json())["message"]
    line = await site.line(reply.headers["x-request-id"])
    assert "401" in line["detail"] and line["outcome"] == "backend_error"
