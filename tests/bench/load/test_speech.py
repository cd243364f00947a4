"""How each API is asked, and where its answers are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.bench.load.client import Exchange
from gateway.bench.load.speech import PATHS, Speech
from gateway.records import Api
from tests.support.apis import DIALECTS, Dialect
from tests.support.site import every_api

TURNS = ["one", "two", "three"]


def body(api: Api, system: str = "be brief", **extra: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Speech(api, "m", extra).request(system, TURNS, 7))
    return found


@every_api
def test_its_route_is_the_apis(dialect: Dialect) -> None:
    assert PATHS[dialect.api] == dialect.path


@every_api
def test_the_text_of_an_answer_is_put_together(dialect: Dialect) -> None:
    exchange = Exchange(0.0, reads=[(0.0, frame) for frame in dialect.frames])
    assert Speech(dialect.api, "m", {}).answer(exchange) == "ab"


def test_a_failed_exchange_has_no_text() -> None:
    for dialect in DIALECTS:
        deep = b"data: " + b"[" * 100_000 + b"\n\n"
        for data in (b"", b"<html>", dialect.error, b"data: 7\n\n", b"data: null\n\n", deep):
            exchange = Exchange(0.0, reads=[(0.0, data)])
            assert Speech(dialect.api, "m", {}).answer(exchange) == ""


@pytest.mark.parametrize("api", PATHS)
def test_all_ask_for_a_stream_of_so_many_tokens_of_the_model(api: Api) -> None:
    found = body(api)
    assert found["stream"] is True and found["model"] == "m"
    limit = "max_output_tokens" if api is Api.RESPONSES else "max_tokens"
    assert found[limit] == 7
    if api in (Api.CHAT, Api.COMPLETIONS):
        assert found["stream_options"] == {"include_usage": True}


def test_where_the_system_prompt_and_the_turns_go() -> None:
    turns = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    assert body(Api.CHAT)["messages"] == [{"role": "system", "content": "be brief"}, *turns]
    assert body(Api.COMPLETIONS)["prompt"] == "be brief\n\none\n\ntwo\n\nthree"
    assert (body(Api.MESSAGES)["system"], body(Api.MESSAGES)["messages"]) == ("be brief", turns)
    found = body(Api.RESPONSES)
    assert (found["instructions"], found["input"]) == ("be brief", turns)


@pytest.mark.parametrize("api", PATHS)
def test_no_system_prompt_leaves_none_behind(api: Api) -> None:
    found = body(api, system="")
    assert not {"system", "instructions"} & set(found)
    assert "be brief" not in json.dumps(found)


def test_further_fields_are_added_or_put_in_place() -> None:
    found = body(Api.CHAT, ignore_eos=True, temperature=0.7)
    assert found["ignore_eos"] is True and found["temperature"] == 0.7
