from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.settings.samples import ABSENT, KEY, OTHER_KEY, changed, faults, loaded

LLAMA = "models/llama-3-70b"
ADVICE = "make one with: openssl rand -hex 32"
DIGEST = hashlib.sha256(KEY.encode()).hexdigest()


def test_an_arm_s_backend_must_be_defined(tmp_path: Path) -> None:
    assert faults(tmp_path, changed((f"{LLAMA}/arms/chunk-512/backends", ["vllm-z"]))) == [
        "models.llama-3-70b.arms.chunk-512.backends[0]: names no backend; defined under backends: "
        "vllm-a, vllm-b, vllm-c"
    ]


def test_a_backend_belongs_to_one_arm_of_one_model(tmp_path: Path) -> None:
    assert faults(tmp_path, changed(("models/small/arms/only/backends", ["vllm-a"]))) == [
        "models.small.arms.only.backends[0]: backend vllm-a serves arm chunk-512 of llama-3-70b "
        "already: a backend belongs to exactly one arm"
    ]


def test_a_backend_no_arm_names_is_no_fault(tmp_path: Path) -> None:
    assert loaded(tmp_path, changed(("models/small", ABSENT))).backends["vllm-c"]


def test_some_weight_must_be_above_zero(tmp_path: Path) -> None:
    arms = f"{LLAMA}/arms"
    data = changed((f"{arms}/chunk-512/weight", 0), (f"{arms}/chunk-2048/weight", 0.0))
    assert faults(tmp_path, data) == [
        "models.llama-3-70b.arms: every weight is 0: at least one must be above 0"
    ]
    assert loaded(tmp_path, changed((f"{arms}/chunk-512/weight", 0)))


def test_a_model_has_one_control(tmp_path: Path) -> None:
    assert faults(tmp_path, changed((f"{LLAMA}/arms/chunk-2048/role", "control"))) == [
        "models.llama-3-70b.arms.chunk-2048.role: arm chunk-512 is the control already: a model "
        "has one"
    ]


@pytest.mark.parametrize(
    ("aliases", "text"),
    [
        (["small"], "small is a model: an alias must be a name of its own"),
        (["x", "small"], "small is a model: an alias must be a name of its own"),
        (["claude-*"], "claude-* is an alias of llama-3-70b already"),
    ],
)
def test_aliases_must_not_clash(tmp_path: Path, aliases: list[str], text: str) -> None:
    assert faults(tmp_path, changed(("models/small/aliases", aliases))) == [
        f"models.small.aliases[{len(aliases) - 1}]: {text}"
    ]


def test_a_model_s_name_is_no_label_of_the_metrics(tmp_path: Path) -> None:
    arms = {"x": {"weight": 1, "backends": ["vllm-c"]}}
    data = changed(("models/small", ABSENT), ("models/unknown", {"arms": arms}))
    assert faults(tmp_path, data) == [
        "models.unknown: 'unknown' is what metrics call models that are not configured"
    ]


def test_no_key_goes_by_the_name_of_none(tmp_path: Path) -> None:
    assert faults(tmp_path, changed(("keys/0/name", "unknown"))) == [
        "keys[0].name: 'unknown' is what metrics call requests without a valid key"
    ]


def test_a_key_needs_one_secret(tmp_path: Path) -> None:
    assert faults(tmp_path, changed(("keys/0/key", ABSENT))) == [
        f"keys[0]: has neither key nor key_sha256: give one of them; {ADVICE}"
    ]
    assert faults(tmp_path, changed(("keys/0/key_sha256", DIGEST))) == [
        "keys[0]: has both key and key_sha256: keep one of them"
    ]
    only_digest = changed(("keys/0", {"name": "dev", "key_sha256": DIGEST.upper()}))
    assert loaded(tmp_path, only_digest).keys[0].key_sha256 == DIGEST


@pytest.mark.parametrize(
    ("first", "second", "later", "earlier"),
    [
        ({"key": KEY}, {"key": KEY}, "keys[1].key", "keys[0].key"),
        ({"key": KEY}, {"key_sha256": DIGEST.upper()}, "keys[1].key_sha256", "keys[0].key"),
        ({"key_sha256": DIGEST}, {"key": KEY}, "keys[0].key_sha256", "keys[1].key"),
    ],
)
def test_two_keys_must_differ_also_by_hash(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], later: str, earlier: str
) -> None:
    data = changed(("keys", [{"name": "one", **first}, {"name": "two", **second}]))
    assert faults(tmp_path, data) == [f"{later}: is the same key as {earlier}: each needs its own"]


def test_the_admin_key_is_no_client_s_key(tmp_path: Path) -> None:
    assert faults(tmp_path, changed(("admin", {"key": KEY}))) == [
        "keys[0].key: is the same key as admin.key: each needs its own"
    ]
    assert faults(tmp_path, changed(("admin", {"key": OTHER_KEY, "read_key": OTHER_KEY}))) == [
        "admin.read_key: is the same key as admin.key: each needs its own"
    ]


def test_a_read_key_alone_opens_nothing(tmp_path: Path) -> None:
    assert faults(tmp_path, changed(("admin", {"read_key": OTHER_KEY}))) == [
        "admin.read_key: needs admin.key beside it: without that the admin API is off"
    ]


@pytest.mark.parametrize("path", ["keys/0/key", "admin/key", "metrics/key"])
def test_a_weak_key_is_refused_wherever_the_gateway_asks_for_it(tmp_path: Path, path: str) -> None:
    dotted = path.replace("/0", "[0]").replace("/", ".")
    assert faults(tmp_path, changed((path, "hunter2"))) == [
        f"{dotted}: is too short: a key needs at least 128 random bits; {ADVICE}"
    ]
    assert faults(tmp_path, changed((path, "sk-change-me-please-0123456789abcdefgh"))) == [
        f"{dotted}: is easy to guess; {ADVICE}"
    ]


def test_a_backend_s_key_may_be_weak_since_it_is_not_ours(tmp_path: Path) -> None:
    assert loaded(tmp_path, changed(("backends/vllm-a/api_key", "token")))


def test_a_key_s_models_and_arms_must_exist(tmp_path: Path) -> None:
    data = changed(
        ("keys/0/models", ["llama-3-70b", "lama", "gpt-4o-local", "ll*"]),
        ("keys/0/arms", ["chunk-512", "chunk-64"]),
    )
    assert faults(tmp_path, data) == [
        'keys[0].models[1]: names no model; defined: llama-3-70b, small, or "*" for all',
        "keys[0].models[2]: is an alias: name the model itself, llama-3-70b",
        "keys[0].arms[1]: names no arm; defined: chunk-512, chunk-2048, only",
    ]


def test_an_engine_vllm_would_not_start(tmp_path: Path) -> None:
    engine = {"max_num_batched_tokens": 64, "max_num_seqs": 128}
    assert faults(tmp_path, changed(("backends/vllm-a/engine", engine))) == [
        "backends.vllm-a.engine.max_num_batched_tokens: must be at least max_num_seqs (128), or "
        "vLLM does not start"
    ]
    assert loaded(tmp_path, changed(("backends/vllm-a/engine/max_num_batched_tokens", 64)))
