"""The tool calls of a chat stream as items of a response."""

from __future__ import annotations

import pytest

from tests.protocols.translate.chat_streams import tool
from tests.protocols.translate.responses_support import events, kinds, output


def test_a_call_streams_its_arguments() -> None:
    found = events(tool(0, "", "shell", "c1"), tool(0, '{"a"'), tool(0, ":1}"), finish="tool_calls")
    assert kinds(found)[2:-1] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert [one["delta"] for one in found if "delta" in one] == ['{"a"', ":1}"]
    assert found[-1]["response"]["output"] == [
        {
            "id": "fc_r1_0",
            "type": "function_call",
            "call_id": "c1",
            "name": "shell",
            "arguments": '{"a":1}',
            "status": "completed",
        }
    ]


def test_a_namespaced_call_comes_back_under_both_names_from_its_first_event() -> None:
    found = events(tool(0, "{}", "agents__spawn", "c1"))
    for item in (found[2]["item"], found[-1]["response"]["output"][0]):
        assert (item["name"], item["namespace"]) == ("spawn", "agents")


def test_a_custom_call_streams_its_input_unescaped() -> None:
    found = events(tool(0, '{"inp', "patch", "c1"), tool(0, 'ut": "a\\'), tool(0, 'nb"}'))
    assert kinds(found)[2:-1] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    assert [one["delta"] for one in found if "delta" in one] == ["a", "\nb"]
    assert found[-1]["response"]["output"] == [
        {
            "id": "ctc_r1_0",
            "type": "custom_tool_call",
            "call_id": "c1",
            "name": "patch",
            "input": "a\nb",
            "status": "completed",
        }
    ]


def test_custom_input_of_another_form_comes_with_its_end() -> None:
    found = events(tool(0, "*** Begin", "patch", "c1"), tool(0, " Patch"))
    assert [one["delta"] for one in found if "delta" in one] == ["*** Begin Patch"]
    assert found[-1]["response"]["output"][0]["input"] == "*** Begin Patch"


def test_calls_side_by_side_keep_their_pieces_apart() -> None:
    said = [
        tool(0, '{"a":', "shell", "c1"),
        tool(1, '{"b":', "shell", "c2"),
        tool(0, "1}"),
        tool(1, "2}"),
    ]
    assert [(item["call_id"], item["arguments"]) for item in output(*said)] == [
        ("c1", '{"a":1}'),
        ("c2", '{"b":2}'),
    ]


@pytest.mark.parametrize("index", [None, 0])
def test_calls_that_are_not_numbered_are_told_apart_by_their_ids(index: int | None) -> None:
    said = [
        tool(index, '{"a":', "shell", "c1"),
        tool(index, "1}"),
        tool(index, '{"b":', "shell", "c2"),
        tool(index, "2}"),
    ]
    assert [item["arguments"] for item in output(*said)] == ['{"a":1}', '{"b":2}']


def test_calls_without_ids_or_with_the_same_one_get_their_own() -> None:
    said = [tool(n, "{}", "shell", id) for n, id in enumerate([None, "c", "c"])]
    assert [item["call_id"] for item in output(*said)] == ["call_r1_0", "c", "call_r1_2"]


def test_a_repeated_name_and_id_is_the_same_call() -> None:
    said = [tool(0, piece, "shell", "c1") for piece in ('{"a"', ":1", "}")]
    assert [item["arguments"] for item in output(*said)] == ['{"a":1}']


def test_a_call_is_announced_with_its_name_however_late_that_comes() -> None:
    items = output(tool(0, '{"a"', None, "c1"), tool(0, ":", "shell"), tool(0, "1}"))
    assert [(item["name"], item["arguments"]) for item in items] == [("shell", '{"a":1}')]


def test_arguments_may_come_as_an_object_or_not_at_all() -> None:
    items = output(tool(0, {"a": 1}, "shell", "c1"), tool(1, None, "shell", "c2"))
    assert [item["arguments"] for item in items] == ['{"a":1}', "{}"]


def test_text_while_a_call_is_open_is_an_item_of_its_own() -> None:
    items = output(
        {"content": "a"}, tool(0, '{"a":', "shell", "c1"), {"content": "b"}, tool(0, "1}")
    )
    assert [item["type"] for item in items] == ["message", "function_call", "message"]
    assert items[1]["arguments"] == '{"a":1}'
