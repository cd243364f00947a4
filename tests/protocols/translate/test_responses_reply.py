"""A whole chat reply as a response, and the official SDK's view of it, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from openai.types.responses import Response

from gateway.errors import BackendFailed
from tests.protocols.translate.chat_streams import USAGE, played, stream, tool
from tests.protocols.translate.responses_support import Json, asked


def reply(message: Json, finish: str = "stop", usage: Any = USAGE) -> bytes:
    """A whole chat reply."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps({**head, "choices": [choice], "usage": usage}).encode()


def whole(message: Json, finish: str = "stop", usage: Any = USAGE, **request: Any) -> Json:
    response: Json = json.loads(asked(**request).whole(reply(message, finish, usage)))
    Response.model_validate(response)
    return response


def called(name: str, arguments: Any, id: str | None = "c1") -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_everything_said_is_an_item() -> None:
    response = whole(
        {
            "reasoning": "hm",
            "content": "yo",
            "refusal": "no",
            "tool_calls": [
                called("shell", '{"a":1}'),
                called("agents__spawn", "", "c2"),
                called("patch", '{"input":"x"}', "c3"),
            ],
        },
        "tool_calls",
    )
    part = {"type": "output_text", "text": "yo", "annotations": [], "logprobs": []}
    message = {"type": "message", "role": "assistant", "status": "completed"}
    call = {"type": "function_call", "status": "completed"}
    assert response["output"] == [
        {
            "id": "rs_r1_0",
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "hm"}],
            "status": "completed",
        },
        {"id": "msg_r1_1", **message, "content": [part]},
        {"id": "msg_r1_2", **message, "content": [{"type": "refusal", "refusal": "no"}]},
        {"id": "fc_r1_3", **call, "call_id": "c1", "name": "shell", "arguments": '{"a":1}'},
        {
            "id": "fc_r1_4",
            **call,
            "call_id": "c2",
            "name": "spawn",
            "namespace": "agents",
            "arguments": "{}",
        },
        {
            "id": "ctc_r1_5",
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": "c3",
            "name": "patch",
            "input": "x",
        },
    ]


def test_the_response_repeats_what_was_set_but_not_what_was_long() -> None:
    response = whole(
        {"content": "yo"},
        instructions="long",
        metadata={"a": "b"},
        temperature=0.5,
        max_output_tokens=9,
        tool_choice="required",
        parallel_tool_calls=False,
    )
    del response["output"]
    assert response == {
        "id": "resp_r1",
        "object": "response",
        "created_at": 7,
        "model": "alias",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": 9,
        "metadata": {"a": "b"},
        "parallel_tool_calls": False,
        "store": False,
        "temperature": 0.5,
        "tool_choice": "required",
        "tools": [],
        "top_p": None,
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 0},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 29,
        },
    }


def test_another_attempt_is_answered_under_the_same_ids() -> None:
    translation = asked()
    body = reply({"content": "yo", "tool_calls": [called("shell", "{}"), called("shell", "{}")]})
    first = translation.whole(body)
    assert translation.whole(body) == first
    deltas = [{"content": "yo"}, tool(0, "{}", "shell", "c1"), tool(1, "{}", "shell", "c1")]
    streams = [played(translation.stream(), [stream(*deltas)]) for _ in range(2)]
    assert streams[0] == streams[1]


@pytest.mark.parametrize("content", [None, ""])
def test_an_answer_of_nothing_is_an_empty_message(content: str | None) -> None:
    (item,) = whole({"content": content})["output"]
    assert item["content"][0]["text"] == ""


def test_a_cut_answer_is_incomplete_and_so_is_its_last_item() -> None:
    response = whole({"reasoning": "hm", "content": "yo"}, "length")
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "x"}])
def test_without_usage_none_is_stated(usage: Any) -> None:
    assert whole({"content": "yo"}, usage=usage)["usage"] is None


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"choices":[]}', b'{"error":{"message":"x"}}', reply({"content": 5})],
)
def test_what_is_no_reply_is_a_fault(body: bytes) -> None:
    with pytest.raises(ValueError):
        asked().whole(body)


def test_a_server_that_gave_up_has_not_answered() -> None:
    with pytest.raises(ValueError, match="gave up"):
        asked().whole(reply({"content": "y"}, "abort"))


# The official SDK


@pytest.fixture(scope="module")
def sdk() -> Iterator[Sdk]:
    with Sdk() as one:
        yield one


class Sdk:
    """The official client before a server that answers with given bytes."""

    def __init__(self) -> None:
        self._answer = b""
        transport = httpx2.MockTransport(self._respond)
        client = httpx2.Client(transport=transport)
        self._client = OpenAI(base_url="http://sdk/v1", api_key="k", http_client=client)

    def __enter__(self) -> Sdk:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def accumulated(self, answer: bytes) -> tuple[Response | None, list[Any]]:
        """The SDK's own final response, if it was completed, and all its events."""
        self._answer = answer
        with self._client.responses.stream(model="alias", input="hi") as events:
            seen = list(events)
            final = events.get_final_response() if seen[-1].type == "response.completed" else None
        return final, seen

    def _respond(self, _: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, content=self._answer
        )


TEXTS = st.text(max_size=8)
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["shell", "agents__spawn", "patch"]),
        TEXTS.map(lambda text: json.dumps({"input": text})) | TEXTS,
        st.integers(0, 10),
    ),
    max_size=3,
)


@settings(max_examples=40)
@given(TEXTS, TEXTS, CALLS, st.sampled_from(["stop", "length"]))
def test_the_sdk_gathers_from_a_stream_what_the_whole_reply_says(
    sdk: Sdk,
    thought: str,
    text: str,
    calls: list[tuple[str, str, int]],
    finish: str,
) -> None:
    said: list[Json] = [{"reasoning": piece} for piece in thought]
    said += [{"content": piece} for piece in text]
    for index, (name, arguments, at) in enumerate(calls):
        said.append(tool(index, arguments[:at], name, f"c{index}"))
        said.append(tool(index, arguments[at:]))
    message = {
        "reasoning": thought,
        "content": text,
        "tool_calls": [called(name, args, f"c{n}") for n, (name, args, _) in enumerate(calls)],
    }
    expected = whole(message, finish)
    final, seen = sdk.accumulated(played(asked().stream(), [stream(*said, finish=finish)]))
    if finish == "length":
        assert final is None and seen[-1].type == "response.incomplete"
        assert seen[-1].response.to_dict() == expected
        return
    assert final is not None
    assert final.output_text == text
    assert _plain(final) == expected


def _plain(response: Response) -> Json:
    """As JSON, without what the SDK adds by parsing."""
    plain = response.to_dict()
    output: Any = plain["output"]
    for item in output:
        item.pop("parsed_arguments", None)
        for part in item.get("content") or ():
            part.pop("parsed", None)
    return plain


def test_the_sdk_lets_signs_of_life_pass_and_reports_a_failure(sdk: Sdk) -> None:
    translation = asked().stream()
    out = translation.keep_alive() + translation.keep_alive()
    out += translation.fail(BackendFailed("Send it again."), "r1")
    _, seen = sdk.accumulated(out)
    assert [event.type for event in seen] == [
        "response.created",
        "response.in_progress",
        "response.in_progress",
        "response.failed",
    ]
    assert seen[-1].response.error.message == "Send it again."
