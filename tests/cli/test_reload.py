from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gateway.errors import ConfigError
from tests.admin.fake import FakeControl, settings

Run = Callable[..., Any]


def test_nothing_changed(run: Run, url: str) -> None:
    result = run("reload")
    assert (result.status, result.out) == (0, "Reloaded; nothing changed.\n")


def test_what_changed(run: Run, url: str, control: FakeControl) -> None:
    control.next_settings = settings(keepalive_interval=10)
    assert run("reload").out == "keepalive_interval: 15 → 10\n"


def test_faults(run: Run, url: str, control: FakeControl) -> None:
    control.next_settings = ConfigError(["server.port: must be a port", "models.x: no arms"])
    result = run("reload")
    assert (result.status, result.out) == (1, "")
    assert "the one in force stays" in result.err
    assert "server.port: must be a port\n" in result.err and "models.x: no arms" in result.err


def test_in_json(run: Run, url: str) -> None:
    assert json.loads(run("reload", "--json").out) == {"changed": []}
