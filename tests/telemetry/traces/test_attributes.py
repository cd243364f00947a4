"""The mapping: documented, named as OpenTelemetry names things, and without content."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import opentelemetry.semconv._incubating.attributes
import opentelemetry.semconv.attributes
import pytest

from gateway.records import Api, NoToken, Outcome, Record, Timeline, Usage
from gateway.telemetry.traces.attributes import ATTRIBUTES, FAILURES, attributes, span_name
from gateway.telemetry.traces.spans import EVENT, MARKS

PAGE = Path(__file__).parents[3].joinpath("docs", "tracing.md").read_text()
OURS = "ttft_gateway."

Streamed = Callable[..., Record]


def table(heading: str) -> list[str]:
    """The names in the first column of the page's table with this heading."""
    rows = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [match[1] for row in rows if (match := re.match(r"\| `([\w.]+)` \| \S", row))]


def conventions(package: ModuleType) -> Iterator[str]:
    """Every attribute's name that the installed package of conventions knows."""
    for module in pkgutil.iter_modules(package.__path__):
        known = importlib.import_module(f"{package.__name__}.{module.name}")
        yield from (value for value in vars(known).values() if isinstance(value, str))


def test_the_page_has_every_attribute_and_no_other() -> None:
    assert table("attribute") == list(ATTRIBUTES)


def test_the_page_has_every_event_and_no_other() -> None:
    assert (
        table("event")
        == [EVENT + mark for mark in MARKS]
        == [EVENT + name for name in Timeline.__struct_fields__]
    )


def test_names_that_are_not_ours_are_those_of_the_conventions() -> None:
    stable = set(conventions(opentelemetry.semconv.attributes))
    known = stable | set(conventions(opentelemetry.semconv._incubating.attributes))
    theirs = [name for name in ATTRIBUTES if not name.startswith(OURS)]
    assert len(theirs) >= 14
    assert [name for name in theirs if name not in known] == []
    general = [name for name in theirs if not name.startswith("gen_ai.")]
    assert [name for name in general if name not in stable] == []


def test_a_streamed_request(streamed: Streamed) -> None:
    record = streamed(
        requested_model="gpt-4o-local", session="9f3c", session_source="x-session-id",
        backend_api="chat", tried=("vllm-b",), revision=4,
    )  # fmt: skip
    assert attributes(record) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "gen_ai.request.model": "gpt-4o-local",
        "gen_ai.request.stream": True,
        "gen_ai.response.model": "llama",
        "gen_ai.response.time_to_first_chunk": 0.065,
        "gen_ai.usage.input_tokens": 1600,
        "gen_ai.usage.cache_read.input_tokens": 1024,
        "gen_ai.usage.output_tokens": 40,
        "gen_ai.conversation.id": "9f3c",
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "url.path": "/v1/chat/completions",
        "ttft_gateway.request_id": "req-1",
        "ttft_gateway.key": "dev",
        "ttft_gateway.model": "llama",
        "ttft_gateway.assigned_arm": "chunk-512",
        "ttft_gateway.arm": "chunk-512",
        "ttft_gateway.backend": "vllm-a",
        "ttft_gateway.backend_api": "chat",
        "ttft_gateway.tried_backends": ("vllm-b",),
        "ttft_gateway.forced": False,
        "ttft_gateway.weights_revision": 4,
        "ttft_gateway.outcome": "ok",
        "ttft_gateway.time_to_first_token": 0.325,
        "ttft_gateway.upstream_time_to_first_token": 0.3,
        "ttft_gateway.queue_time": 0.02,
        "ttft_gateway.usage_exact": True,
    }


def test_a_stranger_leaves_little(streamed: Streamed) -> None:
    never = ("admitted", "sent", "upstream_headers", "first_byte", "first_token", "last_token")
    record = streamed(
        key="", model="unknown", assigned_arm="", arm="", backend="", status=401, stream=False,
        outcome=Outcome.REJECTED, usage=None, marks=dict.fromkeys((*never, "body_complete")),
    )  # fmt: skip
    assert attributes(record) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "gen_ai.request.stream": False,
        "http.request.method": "POST",
        "http.response.status_code": 401,
        "url.path": "/v1/chat/completions",
        "ttft_gateway.request_id": "req-1",
        "ttft_gateway.model": "unknown",
        "ttft_gateway.forced": False,
        "ttft_gateway.weights_revision": 0,
        "ttft_gateway.outcome": "rejected",
    }


def test_only_what_the_server_did_wrong_is_an_error(streamed: Streamed) -> None:
    found = {
        outcome: attributes(streamed(outcome=outcome)).get("error.type") for outcome in Outcome
    }
    assert {str(outcome) for outcome in found if found[outcome]} == {
        "backend_error", "gateway_error", "timeout",
    }  # fmt: skip
    assert all(found[outcome] == outcome for outcome in FAILURES)


@pytest.mark.parametrize("source", ["key", "request"])
def test_what_is_no_conversation_is_not_called_one(streamed: Streamed, source: str) -> None:
    found = attributes(streamed(session="9f3c", session_source=source))
    assert "gen_ai.conversation.id" not in found


def test_a_first_chunk_is_one_of_a_stream(streamed: Streamed) -> None:
    found = attributes(streamed(stream=False, marks={"first_token": None, "last_token": None}))
    assert not [name for name in found if "time_to_first" in name]


def test_messages_of_errors_stay_out(streamed: Streamed) -> None:
    secret = "prompt: my diary; http://10.0.0.7:8001 sk-secret"
    record = streamed(
        outcome=Outcome.BACKEND_ERROR, no_token=NoToken.BACKEND_ERROR, error=secret, detail=secret
    )
    found = attributes(record)
    assert found["ttft_gateway.no_first_token"] == "backend_error"
    assert not [name for name, value in found.items() if "diary" in str(value)]


def test_values_are_of_the_types_the_exporter_takes(streamed: Streamed) -> None:
    for outcome in Outcome:
        record = streamed(outcome=outcome, no_token=NoToken.EMPTY, usage=Usage(1, 2, 3))
        kinds = {type(value) for value in attributes(record).values()}
        assert kinds <= {str, bool, int, float, tuple}


@pytest.mark.parametrize(
    ("api", "name"),
    [
        (Api.CHAT, "chat llama"),
        (Api.RESPONSES, "chat llama"),
        (Api.COMPLETIONS, "text_completion llama"),
        (Api.EMBEDDINGS, "embeddings llama"),
        (Api.OTHER, "other llama"),
    ],
)
def test_a_span_is_named_by_configuration_alone(streamed: Streamed, api: Api, name: str) -> None:
    assert span_name(streamed(api=api, requested_model="whatever a client sends")) == name
