"""Answers of a native `/v1/responses` under the client's names for its tools."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from gateway.protocols.sanitise.restore import Restore
from gateway.protocols.sse import Event, Reader
from gateway.protocols.translate.responses_tools import Names, flatten
from tests.protocols.sanitise.requests import shaped
from tests.protocols.sanitise.test_responses import AGENTS, KEYS, PATCH, SHELL, WORDS
from tests.support.apis import RESPONSES

EVENT = TypeAdapter[Any](ResponseStreamEvent)


@pytest.fixture
def names() -> Names:
    return flatten([SHELL, AGENTS, PATCH])[1]


def event(payload: dict[str, Any], name: bool = True) -> Event:
    data = msgspec.json.encode(payload)
    head = b"event: " + payload["type"].encode() + b"\n" if name else b""
    (one,) = Reader().feed(head + b"data: " + data + b"\n\n")
    return one


def read(raw: bytes) -> dict[str, Any]:
    """The payload of one event as the SDK takes it, its name checked."""
    (one,) = Reader().feed(raw)
    payload: dict[str, Any] = msgspec.json.decode(one.data)
    assert one.event in (b"", payload["type"].encode())
    EVENT.validate_python(payload)
    return payload


def call(name: str, arguments: str, **more: str) -> dict[str, Any]:
    return {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "c",
        "name": name,
        "arguments": arguments,
        **more,
    }


def item_event(stage: str, item: dict[str, Any]) -> dict[str, Any]:
    at = {"output_index": 1, "sequence_number": 4}
    return {"type": f"response.output_item.{stage}", "item": item, **at}


def arguments_event(stage: str, **more: str) -> dict[str, Any]:
    at = {"item_id": "fc_1", "output_index": 1, "sequence_number": 5}
    return {"type": f"response.function_call_arguments.{stage}", **at, **more}


PATCHED = {
    "id": "fc_1",
    "type": "custom_tool_call",
    "status": "completed",
    "call_id": "c",
    "name": "apply_patch",
    "input": "*** a\n",
}


@pytest.mark.parametrize("stage", ["added", "done"])
def test_a_namespaces_call_comes_back_under_both_its_names(names: Names, stage: str) -> None:
    restored = Restore(names).event(event(item_event(stage, call("agents__spawn", "{}"))))
    assert read(restored) == item_event(stage, call("spawn", "{}", namespace="agents"))


def test_arguments_of_a_namespaces_call_name_it_too(names: Names) -> None:
    restore = Restore(names)
    restore.event(event(item_event("added", call("agents__spawn", ""))))
    delta = event(arguments_event("delta", delta='{"a"'))
    assert restore.event(delta) == delta.raw
    done = restore.event(event(arguments_event("done", name="agents__spawn", arguments="{}")))
    assert read(done) == arguments_event("done", name="spawn", arguments="{}")


@pytest.mark.parametrize("named", [True, False])
def test_a_custom_tools_input_streams_out_of_the_arguments(names: Names, named: bool) -> None:
    restore = Restore(names)
    added = restore.event(event(item_event("added", call("apply_patch", "")), named))
    assert read(added) == item_event("added", {**PATCHED, "input": ""})
    pieces = ['{"inp', 'ut": "*** a', "\\", 'n"', "}"]
    frames = [restore.event(event(arguments_event("delta", delta=one), named)) for one in pieces]
    assert [one.startswith(b"event: ") for one in frames] == [named] * 5
    deltas = [read(one) for one in frames]
    assert {one["type"] for one in deltas} == {"response.custom_tool_call_input.delta"}
    assert [one["delta"] for one in deltas] == ["", "*** a", "", "\n", ""]
    done = arguments_event("done", name="apply_patch", arguments="".join(pieces))
    assert read(restore.event(event(done, named))) == {
        "type": "response.custom_tool_call_input.done",
        "item_id": "fc_1",
        "output_index": 1,
        "sequence_number": 5,
        "input": "*** a\n",
    }
    last = item_event("done", call("apply_patch", "".join(pieces)))
    assert read(restore.event(event(last, named))) == item_event("done", PATCHED)


def test_the_whole_answer_has_the_clients_names(names: Names) -> None:
    output = [call("apply_patch", '{"input":"*** a\\n"}'), call("shell", "{}")]
    reply = {**RESPONSES.reply, "usage": None, "output": output}
    expected = {**reply, "output": [PATCHED, call("shell", "{}")]}
    assert msgspec.json.decode(Restore(names).whole(msgspec.json.encode(reply))) == expected
    last = {"type": "response.completed", "sequence_number": 9, "response": reply}
    assert read(Restore(names).event(event(last))) == {**last, "response": expected}


def test_what_holds_no_such_call_stays_as_it_came(names: Names) -> None:
    restore = Restore(names)
    for frame in RESPONSES.frames:
        (one,) = Reader().feed(frame)
        assert restore.event(one) is one.raw
    own = event(item_event("done", call("shell", '{ "a" : 1}')))
    assert restore.event(own) is own.raw
    text = {**RESPONSES.reply, "instructions": "function_call", "output": [call("shell", "{}")]}
    whole = msgspec.json.encode(text)
    assert restore.whole(whole) is whole


@pytest.mark.parametrize("data", [b"[DONE]", b"function_call", b'{"function_call":', b"[" * 9999])
def test_what_is_no_answer_stays_as_it_came(names: Names, data: bytes) -> None:
    assert Restore(names).event(Event(b"raw", data)) == b"raw"
    assert Restore(names).whole(data) == data


TYPES = [
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
]
NAMES = ["function_call", "apply_patch", "agents__spawn"]
FRAME = shaped([*TYPES, *NAMES, *WORDS], ["item", "response", "output_index", "delta", *KEYS])


@given(FRAME)
def test_whatever_comes_goes_on(frame: Any) -> None:
    restore = Restore(flatten([AGENTS, PATCH])[1])
    data = msgspec.json.encode(frame)
    assert restore.event(Event(b"data: " + data + b"\n\n", data)).endswith(b"\n\n")
    msgspec.json.decode(restore.whole(data))
