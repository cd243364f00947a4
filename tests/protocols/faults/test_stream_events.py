"""Errors within a stream, as the official SDKs take them."""

from __future__ import annotations

from collections.abc import Callable

import anthropic
import openai
import pytest

from gateway import errors
from gateway.errors import GatewayError
from gateway.protocols import faults
from gateway.protocols.sse import Reader
from gateway.protocols.tokens import Observer
from gateway.records import Api
from tests.protocols.faults.clients import (
    ADDED,
    CHUNK,
    CREATED,
    DELTAS,
    SAYING,
    START,
    anthropic_client,
    ask_chat,
    ask_completion,
    ask_messages,
    ask_responses,
    openai_client,
)


@pytest.mark.parametrize(("api", "ask"), [(Api.CHAT, ask_chat), (Api.COMPLETIONS, ask_completion)])
def test_openai_sdk_raises_at_an_error_event(
    api: Api, ask: Callable[[openai.OpenAI], list[str]]
) -> None:
    event = faults.stream_event(api, errors.BackendFailed(SAYING), "r", 1)
    assert event.endswith(b"\n\ndata: [DONE]\n\n")
    with pytest.raises(openai.APIError) as caught:
        ask(openai_client(CHUNK + event))
    assert caught.value.message == SAYING
    assert (caught.value.type, caught.value.code) == ("backend_error", "backend_error")


@pytest.mark.parametrize("before", [b"", START], ids=["first", "later"])
def test_anthropic_sdk_raises_at_an_error_event(before: bytes) -> None:
    event = faults.stream_event(Api.MESSAGES, errors.Overloaded(SAYING), "r", 1)
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask_messages(anthropic_client(before + event))
    assert (caught.value.type, caught.value.api_message) == ("overloaded_error", SAYING)
    with (
        pytest.raises(anthropic.APIStatusError),
        anthropic_client(before + event).messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]
        ) as stream,
    ):
        stream.get_final_message()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.BackendFailed(SAYING), "server_error"),
        (errors.BackendTimeout(SAYING), "server_error"),
        (errors.NoBackend(SAYING), "server_is_overloaded"),
        (errors.Overloaded(SAYING), "server_is_overloaded"),
        (errors.RateLimited(SAYING), "rate_limit_exceeded"),
        (errors.BadRequest(SAYING), "invalid_prompt"),
        (errors.BadRequest(SAYING, code="context_length_exceeded"), "context_length_exceeded"),
    ],
)
def test_a_response_fails_with_a_code_that_tells_whether_to_try_again(
    error: GatewayError, code: str
) -> None:
    event = faults.stream_event(Api.RESPONSES, error, "r", 4, response_id="resp_1", model="m")
    said = ask_responses(openai_client(CREATED + ADDED + DELTAS + event))[-1]
    assert (said.type, said.sequence_number) == ("response.failed", 4)
    assert (said.response.id, said.response.model) == ("resp_1", "m")
    assert (said.response.error.code, said.response.error.message) == (code, SAYING)


@pytest.mark.parametrize(
    ("before", "sequence", "response_id"),
    [(b"", 0, None), (b": keep-alive\n\n", 0, None), (CREATED + ADDED + DELTAS, 4, "resp_1")],
)
def test_the_accumulator_of_the_openai_sdk_follows_a_failed_response(
    before: bytes, sequence: int, response_id: str | None
) -> None:
    """It wants `response.created` first and the same id throughout, and raises otherwise."""
    error = errors.BackendFailed(SAYING)
    event = faults.stream_event(Api.RESPONSES, error, "r", sequence, response_id=response_id)
    with openai_client(before + event).responses.stream(model="m", input="x") as stream:
        kinds = [event.type for event in stream]
    assert (kinds[0], kinds[-1]) == ("response.created", "response.failed")


@pytest.mark.parametrize("api", [Api.CHAT, Api.COMPLETIONS, Api.MESSAGES, Api.RESPONSES])
def test_our_error_events_are_errors_to_our_own_reader(api: Api) -> None:
    """A gateway behind a gateway, for one."""
    event = faults.stream_event(api, errors.BackendFailed(SAYING), "r", 1)
    observer = Observer(api)
    assert any(observer.feed(one).error for one in Reader().feed(event))
