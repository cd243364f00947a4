"""A small good configuration, and what `load` says of changed ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.settings import Settings, load

KEY = "sk-Yk3vq0Zt8Rw2Lx5Nc7Bd1Mf4Gh6"
OTHER_KEY = "6c0f6a0f5c0d4b7e9a1d2b3c4e5f6071"
ABSENT = object()

GOOD: dict[str, Any] = {
    "models": {
        "llama-3-70b": {
            "aliases": ["gpt-4o-local", "claude-*"],
            "arms": {
                "chunk-512": {"weight": 50, "role": "control", "backends": ["vllm-a"]},
                "chunk-2048": {"weight": 50, "role": "canary", "backends": ["vllm-b"]},
            },
        },
        "small": {"arms": {"only": {"weight": 1, "backends": ["vllm-c"]}}},
    },
    "backends": {
        "vllm-a": {"url": "http://127.0.0.1:8001", "api_key": "sk-of-the-backend"},
        "vllm-b": {"url": "http://127.0.0.1:8002"},
        "vllm-c": {"url": "http://127.0.0.1:8003"},
    },
    "keys": [{"name": "dev", "key": KEY}],
}


def changed(*changes: tuple[str, Any]) -> dict[str, Any]:
    """GOOD with other values at paths such as `keys/0/name`; ABSENT removes what is there."""
    data = deepcopy(GOOD)
    for path, value in changes:
        *above, last = path.split("/")
        at: Any = data
        for part in above:
            at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
        if value is ABSENT:
            del at[last]
        elif isinstance(at, list):
            at[int(last) :] = [value]
        else:
            at[last] = value
    return data


def loaded(folder: Path, content: Any, env: Mapping[str, str] | None = None) -> Settings:
    """What the content of a file means: text as it is, data as JSON."""
    path = folder / "gateway.yaml"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return load(path, env or {})


def faults(folder: Path, content: Any, env: Mapping[str, str] | None = None) -> list[str]:
    """Every fault of a content that must not load."""
    with pytest.raises(ConfigError) as caught:
        loaded(folder, content, env)
    assert str(caught.value) == "\n".join(caught.value.faults)
    return caught.value.faults
