"""Signs of life, which the official SDKs pass over."""

from __future__ import annotations

import json

import pytest

from gateway.protocols import faults
from gateway.protocols.sse import Reader
from gateway.protocols.tokens import Observer
from gateway.records import Api
from tests.protocols.faults.clients import (
    ADDED,
    CHUNK,
    COMPLETED,
    CREATED,
    DELTAS,
    START,
    anthropic_client,
    ask_chat,
    ask_completion,
    ask_messages,
    ask_responses,
    openai_client,
)


@pytest.mark.parametrize("api", [Api.CHAT, Api.COMPLETIONS])
def test_openai_sdk_passes_over_keep_alives(api: Api) -> None:
    alive = faults.keepalive(api)
    body = alive + CHUNK + alive + CHUNK + alive + b"data: [DONE]\n\n"
    assert (ask_chat if api is Api.CHAT else ask_completion)(openai_client(body)) == ["Hi", "Hi"]


def test_anthropic_sdk_passes_over_keep_alives() -> None:
    alive = faults.keepalive(Api.MESSAGES)
    kinds = [event.type for event in ask_messages(anthropic_client(alive + START + alive))]
    assert kinds == ["message_start"]


def test_openai_sdk_passes_over_keep_alives_of_responses() -> None:
    early = faults.keepalive(Api.RESPONSES, begun=False)
    alive = faults.keepalive(Api.RESPONSES)
    body = early + CREATED + alive + ADDED + alive + DELTAS + alive + COMPLETED
    with openai_client(body).responses.stream(model="m", input="x") as stream:
        assert stream.get_final_response().output_text == "Hi"
    kinds = [event.type for event in ask_responses(openai_client(body))]
    assert kinds.count("response.output_text.delta") == 1
    assert kinds[-1] == "response.completed"


def test_codex_counts_only_data_as_a_sign_of_life() -> None:
    (event,) = Reader().feed(faults.keepalive(Api.RESPONSES))
    assert json.loads(event.data) == {"type": "ping"}


@pytest.mark.parametrize("api", Api)
@pytest.mark.parametrize("begun", [True, False])
def test_keep_alives_are_whole_events_that_say_nothing(api: Api, begun: bool) -> None:
    (event,) = Reader().feed(faults.keepalive(api, begun=begun))
    assert event.raw == faults.keepalive(api, begun=begun)
    assert Observer(api).feed(event) == Observer(Api.OTHER).feed(event)
