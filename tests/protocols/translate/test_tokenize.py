"""Counting tokens for a Messages client on a backend that cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import BadRequest
from gateway.protocols.translate import tokenize

IMAGE: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}


def _body(*content: Any, **fields: Any) -> bytes:
    messages = [{"role": "user", "content": list(content)}]
    return json.dumps({"model": "backend", "messages": messages, **fields}).encode()


def _estimate(*content: Any, **fields: Any) -> int:
    return int(json.loads(tokenize.estimate(_body(*content, **fields)))["input_tokens"])


def test_the_tokenizer_gets_the_prompt_and_nothing_else() -> None:
    body = _body(
        {"type": "text", "text": "hi"},
        system="be",
        tools=[{"name": "f", "input_schema": {}}],
        thinking={"type": "disabled"},
        tool_choice={"type": "auto"},
    )
    assert json.loads(tokenize.to_tokenize(body)) == {
        "model": "backend",
        "messages": [{"role": "system", "content": "be"}, {"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_its_count_is_the_answer() -> None:
    reply = b'{"count": 12, "max_model_len": 4096, "tokens": [1, 2]}'
    assert json.loads(tokenize.counted(reply, _body())) == {"input_tokens": 12}


@pytest.mark.parametrize("reply", [b"", b"{}", b'{"count": "x"}', b'{"count": -1}', b'{"error":1}'])
def test_where_a_reply_has_no_count_it_is_estimated(reply: bytes) -> None:
    body = _body({"type": "text", "text": "word" * 1000})
    assert tokenize.counted(reply, body) == tokenize.estimate(body)


def test_the_estimate_grows_with_text_tools_and_images() -> None:
    small = _estimate({"type": "text", "text": "hi"})
    assert 0 < small < 20
    assert 999 <= _estimate({"type": "text", "text": "word" * 1000}) - small <= 1001
    tool = {"name": "f", "description": "d" * 4000, "input_schema": {}}
    assert 1000 <= _estimate({"type": "text", "text": "hi"}, tools=[tool]) - small <= 1040
    big = {**IMAGE, "source": {**IMAGE["source"], "data": "A" * 100_000}}
    assert 1600 <= _estimate(big) <= 1620 and 3200 <= _estimate(big, big) <= 3220


@pytest.mark.parametrize("count", [tokenize.to_tokenize, tokenize.estimate])
def test_a_request_at_fault_is_refused(count: Any) -> None:
    with pytest.raises(BadRequest, match=r"^messages\[0\].content\[0\].type: "):
        count(_body({"type": "video"}))
