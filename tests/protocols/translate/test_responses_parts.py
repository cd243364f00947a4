"""Content that is more than text, and items of what the API's operator would have run."""

from __future__ import annotations

import base64
import json

import pytest

from tests.protocols.translate.responses_support import (
    IMAGE,
    USER,
    Json,
    messages,
    refused,
    result,
)

# Parts


def test_text_with_images_is_a_list_in_the_given_order() -> None:
    content = [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "image_url": IMAGE, "detail": "original"},
        {"type": "input_image", "image_url": IMAGE, "detail": "auto"},
        {"type": "input_image", "image_url": IMAGE, "detail": None},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
    ]
    assert messages({"role": "user", "content": content})[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": IMAGE, "detail": "high"}},
        {"type": "image_url", "image_url": {"url": IMAGE, "detail": "auto"}},
        {"type": "image_url", "image_url": {"url": IMAGE}},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
    ]


@pytest.mark.parametrize("head", ["data:text/md;base64,", "data:text/x;charset=u8;base64,", ""])
def test_a_text_file_is_told_as_its_text(head: str) -> None:
    data = head + base64.b64encode("# Zoë".encode()).decode()
    part = {"type": "input_file", "filename": "a.md", "file_data": data}
    (message,) = messages({"role": "user", "content": [{"type": "input_text", "text": "x"}, part]})
    assert message["content"] == "x\na.md:\n# Zoë"


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"type": "input_file", "file_id": "f"}, ""),
        ({"type": "input_file", "file_url": "http://x"}, ""),
        ({"type": "input_file", "file_data": "data:application/pdf;base64,AAAA"}, ""),
        ({"type": "input_file", "file_data": "data:text/plain;base64,/w=="}, ""),
        ({"type": "input_file", "file_data": "%"}, ""),
        ({"type": "input_image", "file_id": "f"}, ".image_url"),
        ({"type": "input_text"}, ".text"),
        ({"type": "input_text", "text": 5}, ".text"),
        ({"type": "input_video"}, ".type"),
        ({}, ".type"),
    ],
)
def test_parts_that_cannot_be_told_are_refused_by_their_path(part: Json, path: str) -> None:
    error = refused(USER, {"role": "user", "content": [part]})
    assert error.param == f"input[1].content[0]{path}"
    assert error.param in error.message


def test_refusals_are_text() -> None:
    part = {"type": "refusal", "refusal": "No."}
    assert messages({"role": "assistant", "content": [part]})[0]["content"] == "No."


# What the API's operator would have run


def test_searches_leave_a_note() -> None:
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    items = [
        USER,
        {**search, "action": {"type": "search", "query": "weather oslo"}},
        {**search, "action": {"type": "open_page", "url": "http://x"}},
        search,
        {"type": "mcp_call", "name": "lookup", "arguments": "{}"},
    ]
    assert messages(*items)[1]["content"] == (
        "[web search: weather oslo]\n[web search: http://x]\n[web search]\n[tool called: lookup]"
    )


def test_shells_are_calls_and_results() -> None:
    items = [
        {
            "type": "local_shell_call",
            "call_id": "c1",
            "action": {"type": "exec", "command": ["ls"]},
        },
        result("c1", "a.py"),
        {"type": "apply_patch_call", "call_id": "c2", "operation": {"type": "delete_file"}},
        {"type": "apply_patch_call_output", "call_id": "c2", "status": "completed", "output": "ok"},
        {"type": "shell_call", "call_id": "c3", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c3", "output": [{"stdout": "a", "stderr": "b"}]},
        {"type": "local_shell_call", "id": "l4", "call_id": None, "action": {"type": "exec"}},
        {"type": "local_shell_call_output", "id": "l4", "output": "b"},
    ]
    found = messages(*items)
    assert [one["role"] for one in found] == ["assistant", "tool"] * 4
    names = [one["tool_calls"][0]["function"]["name"] for one in found[::2]]
    assert names == ["local_shell", "apply_patch", "shell", "local_shell"]
    assert json.loads(found[0]["tool_calls"][0]["function"]["arguments"])["command"] == ["ls"]
    assert [one["content"] for one in found[1::2]] == [
        "a.py",
        "ok",
        "ab",
        "b",
    ]


def test_a_screenshot_is_an_image() -> None:
    shot = {"type": "computer_screenshot", "image_url": IMAGE}
    items = [
        {"type": "computer_call", "call_id": "c1", "action": {"type": "click"}},
        {"type": "computer_call_output", "call_id": "c1", "output": shot},
    ]
    assert messages(*items)[-1]["content"][1]["image_url"]["url"] == IMAGE


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "context_compaction"])
def test_compaction_leaves_a_note(kind: str) -> None:
    (first, second) = messages({"type": kind, "encrypted_content": "gAAA"}, USER)
    assert first["role"] == "user" and "left out" in first["content"]
    assert second == USER


def test_bookkeeping_leaves_nothing() -> None:
    assert messages({"type": "mcp_list_tools", "tools": []}, {"type": "ghost_snapshot"}, USER) == [
        USER
    ]
