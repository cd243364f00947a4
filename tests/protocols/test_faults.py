"""Error shapes and signs of life, as the official SDKs take them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_args

import anthropic
import httpx2
import openai
import pytest
from anthropic.types.shared.error_type import ErrorType

from gateway import errors
from gateway.errors import GatewayError
from gateway.protocols import faults
from gateway.protocols.sse import Reader
from gateway.protocols.tokens import Observer
from gateway.records import Api

OPENAI_APIS = [Api.CHAT, Api.COMPLETIONS, Api.RESPONSES, Api.EMBEDDINGS, Api.OTHER]
SAYING = "Say it otherwise: use `x`."

# (our error, openai's exception, anthropic's exception and error type)
ERRORS: list[tuple[type[GatewayError], type[Exception], type[Exception], str]] = [
    (
        errors.BadRequest,
        openai.BadRequestError,
        anthropic.BadRequestError,
        "invalid_request_error",
    ),
    (
        errors.Unauthorized,
        openai.AuthenticationError,
        anthropic.AuthenticationError,
        "authentication_error",
    ),
    (
        errors.Forbidden,
        openai.PermissionDeniedError,
        anthropic.PermissionDeniedError,
        "permission_error",
    ),
    (errors.NotFound, openai.NotFoundError, anthropic.NotFoundError, "not_found_error"),
    (errors.Conflict, openai.ConflictError, anthropic.ConflictError, "invalid_request_error"),
    (
        errors.TooLarge,
        openai.APIStatusError,
        anthropic.APIStatusError,
        "request_too_large",
    ),
    (errors.RateLimited, openai.RateLimitError, anthropic.RateLimitError, "rate_limit_error"),
    (errors.Overloaded, openai.InternalServerError, anthropic.APIStatusError, "overloaded_error"),
    (errors.NoBackend, openai.InternalServerError, anthropic.APIStatusError, "api_error"),
    (errors.BackendFailed, openai.InternalServerError, anthropic.InternalServerError, "api_error"),
    (
        errors.BackendTimeout,
        openai.InternalServerError,
        anthropic.InternalServerError,
        "timeout_error",
    ),
    (GatewayError, openai.InternalServerError, anthropic.InternalServerError, "api_error"),
]


def answering(status: int, body: bytes, kind: str) -> httpx2.Client:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=body, headers={"content-type": kind})

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def openai_client(body: bytes, status: int = 200, kind: str = "text/event-stream") -> openai.OpenAI:
    return openai.OpenAI(
        api_key="k",
        base_url="http://gateway/v1",
        max_retries=0,
        http_client=answering(status, body, kind),
    )


def anthropic_client(
    body: bytes, status: int = 200, kind: str = "text/event-stream"
) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        api_key="k",
        base_url="http://gateway",
        max_retries=0,
        http_client=answering(status, body, kind),
    )


def ask_chat(client: openai.OpenAI) -> list[str]:
    stream = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "x"}], stream=True
    )
    return [chunk.choices[0].delta.content or "" for chunk in stream]


def ask_completion(client: openai.OpenAI) -> list[str]:
    stream = client.completions.create(model="m", prompt="x", stream=True)
    return [chunk.choices[0].text for chunk in stream]


def ask_responses(client: openai.OpenAI) -> list[Any]:
    return list(client.responses.create(model="m", input="x", stream=True))


def ask_messages(client: anthropic.Anthropic) -> list[Any]:
    return list(
        client.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}], stream=True
        )
    )


# Whole replies


@pytest.mark.parametrize(("ours", "theirs"), [(row[0], row[1]) for row in ERRORS])
@pytest.mark.parametrize("api", OPENAI_APIS)
def test_openai_sdk_raises_its_own_error(
    api: Api, ours: type[GatewayError], theirs: type[openai.APIStatusError]
) -> None:
    error = ours(SAYING, param="messages[0].role", code="some_code")
    body = faults.body(api, error, "req-1")
    with pytest.raises(openai.APIStatusError) as caught:
        ask_chat(openai_client(body, ours.status, "application/json"))
    assert type(caught.value) is theirs
    assert SAYING in caught.value.message
    assert (caught.value.code, caught.value.param) == ("some_code", "messages[0].role")
    assert caught.value.type == ours.openai_type
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(("ours", "theirs", "kind"), [(row[0], row[2], row[3]) for row in ERRORS])
def test_anthropic_sdk_raises_its_own_error(
    ours: type[GatewayError], theirs: type[anthropic.APIStatusError], kind: str
) -> None:
    body = faults.body(Api.MESSAGES, ours(SAYING), "req-1")
    with pytest.raises(theirs) as caught:
        ask_messages(anthropic_client(body, ours.status, "application/json"))
    assert caught.value.status_code == ours.status
    assert caught.value.type == kind
    assert caught.value.api_message == SAYING
    assert json.loads(body)["request_id"] == "req-1"
    assert json.loads(body)["type"] == "error"


# Anthropic documents `request_too_large` for 413; its SDK's own list leaves it out.
ANTHROPIC_TYPES = {*get_args(ErrorType), "request_too_large"}


def every_error(kind: type[GatewayError] = GatewayError) -> list[type[GatewayError]]:
    found = [kind] if kind.__module__ == errors.__name__ else []
    return found + [one for child in kind.__subclasses__() for one in every_error(child)]


@pytest.mark.parametrize("ours", every_error())
def test_every_error_has_a_type_that_anthropic_knows(ours: type[GatewayError]) -> None:
    assert ours.anthropic_type in ANTHROPIC_TYPES


def test_details_for_the_operator_never_reach_the_client() -> None:
    error = errors.BackendFailed("Send it again.", detail="vllm-a at 10.0.0.7 said no")
    for api in Api:
        said = faults.body(api, error, "r") + faults.stream_event(api, error, "r", 0)
        assert b"vllm-a" not in said and b"10.0.0.7" not in said


# Within a stream


CHUNK = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"Hi"},"text":"Hi","finish_reason":null}]}\n\n'
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


START = (
    b"event: message_start\n"
    b'data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
    b'"content":[],"model":"m","stop_reason":null,"stop_sequence":null,'
    b'"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
)


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


RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "in_progress",
    "model": "m",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
TEXT = {"type": "output_text", "text": "Hi", "annotations": []}


def response_event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


CREATED = response_event("response.created", sequence_number=0, response=RESPONSE)
ADDED = response_event(
    "response.output_item.added",
    sequence_number=1,
    output_index=0,
    item={**ITEM, "status": "in_progress", "content": []},
)
DELTAS = response_event(
    "response.content_part.added",
    sequence_number=2,
    item_id="msg_1",
    output_index=0,
    content_index=0,
    part={**TEXT, "text": ""},
) + response_event(
    "response.output_text.delta",
    sequence_number=3,
    item_id="msg_1",
    output_index=0,
    content_index=0,
    delta="Hi",
    logprobs=[],
)
COMPLETED = response_event(
    "response.completed",
    sequence_number=4,
    response={**RESPONSE, "status": "completed", "output": [{**ITEM, "content": [TEXT]}]},
)


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


# Signs of life


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
