from __future__ import annotations

import copy
from typing import Any

from gateway.admin.changes import changes
from gateway.settings import Settings
from tests.admin.fake import CONFIGURATION


def changed(edit: Any) -> list[str]:
    configuration = copy.deepcopy(CONFIGURATION)
    edit(configuration)
    old, new = Settings.model_validate(CONFIGURATION), Settings.model_validate(configuration)
    return changes(old, new)


def test_nothing_changed() -> None:
    assert changed(lambda c: None) == []


def test_values_by_path() -> None:
    def edit(c: Any) -> None:
        c["models"]["llama"]["arms"]["chunk-512"]["weight"] = 60
        c["models"]["llama"]["aliases"] = ["a", "b"]
        c["keys"][0]["requests_per_minute"] = None

    assert changed(edit) == [
        "models.llama.aliases: [gpt-4o-local, claude-*] → [a, b]",
        "models.llama.arms.chunk-512.weight: 90 → 60",
        "keys.dev.requests_per_minute: 600 → none",
    ]


def test_what_came_and_what_went() -> None:
    def edit(c: Any) -> None:
        del c["models"]["org/small"]
        c["backends"]["vllm-d"] = {"url": "http://10.0.0.4"}
        c["backends"]["vllm-a"]["engine"] = None

    assert changed(edit) == [
        "models.org/small: removed",
        "backends.vllm-a.engine: set → none",
        "backends.vllm-d: added",
    ]


def test_a_secret_changed_and_is_not_shown() -> None:
    def edit(c: Any) -> None:
        c["keys"][0]["key"] = "sk-next-0123456789abcdefghijkl"
        c["backends"]["vllm-b"]["api_key"] = None
        c["traces"] = {"headers": {"Authorization": "Bearer secret"}}

    assert changed(edit) == [
        "traces.headers.authorization: added (takes effect at the next start)",
        "backends.vllm-b.api_key: changed",
        "keys.dev.key: changed",
    ]


def test_what_waits_for_a_restart_says_so() -> None:
    def edit(c: Any) -> None:
        c["server"] = {"port": 9000, "drain_delay": 1}
        c["database_url"] = "sqlite:///other.db"

    assert changed(edit) == [
        "server.port: 8080 → 9000 (takes effect at the next start)",
        "server.drain_delay: 5 → 1",
        "database_url: changed (takes effect at the next start)",
    ]
