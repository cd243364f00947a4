from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.admin.fake import FakeControl

Run = Callable[..., Any]


def test_models(run: Run, url: str, control: FakeControl) -> None:
    control.table.backends["vllm-b"].up = False
    result = run("models")
    assert result.status == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    assert "gpt-4o-local, claude-*" in lines["llama"]
    assert "chunk-512 90 %, chunk-64 10 %" in lines["llama"]
    assert "1 of 2 usable" in lines["llama"]
    assert "1 of 1 usable" in lines["org/small"]


def test_models_in_json(run: Run, url: str) -> None:
    assert json.loads(run("models", "--json").out)[0]["upstream_model"] == "meta-llama/Llama-3-70B"
