from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.errors import ConfigError
from gateway.settings import Model, Settings, load
from gateway.settings.tree import ServerSettings
from tests.settings.samples import GOOD, KEY, changed, faults, loaded

# The configuration of the design, its environment and its files.
EXAMPLE = """
server: {host: 127.0.0.1, port: 8080, workers: 1, max_body_mib: 32, drain_delay: 5,
         drain_timeout: 600, cors_origins: []}
models:
  llama-3-70b:
    aliases: [gpt-4o-local]
    upstream_model: meta-llama/Llama-3-70B-Instruct
    max_output_tokens: null
    context_window: 131072
    experiment: {name: chunk-size, unit: session, slo_ttft_ms: 500}
    arms:
      chunk-512:  {weight: 50, role: control, backends: [vllm-a]}
      chunk-2048: {weight: 50, role: canary,  backends: [vllm-b]}
backends:
  vllm-a:
    url: http://127.0.0.1:8001
    api_key: ${VLLM_A_KEY}
    engine: {max_num_batched_tokens: 512, max_num_seqs: 128, block_size: 16,
             prefix_caching: true, gpu_memory_utilization: 0.90}
    apis: auto
    max_concurrency: 256
  vllm-b: {url: "http://127.0.0.1:8002/", apis: [chat, responses]}
keys:
  - {name: dev, key: ${GATEWAY_KEY}, models: ["*"], requests_per_minute: 600,
     tokens_per_minute: 200000, max_concurrency: 32, arms: any, cache_salt: false}
admin: {key: ${GATEWAY_ADMIN_KEY}, read_key: null}
metrics: {key: null}
database_url: sqlite:///gateway.db
valkey_url: null
timeouts: {connect: 2, first_token: 600, idle: 120, total: 3600}
keepalive_interval: 15
admission: {queue_limit: 1024, queue_timeout: 30}
rollout: {steps: [1, 5, 25, 50, 100], min_duration: 600, block: 30, min_blocks: 20,
          max_requests: 100000}
"""
ENV = {
    "VLLM_A_KEY": "x",
    "GATEWAY_KEY": KEY,
    "GATEWAY_ADMIN_KEY": "b3f1c2d4e5a697887960504132231405",
}


def test_the_design_s_example_loads(tmp_path: Path) -> None:
    settings = loaded(tmp_path, EXAMPLE, ENV)
    model = settings.models["llama-3-70b"]
    assert model.upstream_model == "meta-llama/Llama-3-70B-Instruct"
    assert model.experiment.slo_ttft_ms == 500
    assert {name: arm.weight for name, arm in model.arms.items()} == {
        "chunk-512": 50,
        "chunk-2048": 50,
    }
    backend = settings.backends["vllm-a"]
    assert backend.api_key is not None and backend.api_key.get_secret_value() == "x"
    assert backend.engine is not None and backend.engine.gpu_memory_utilization == 0.9
    assert settings.backends["vllm-b"].apis == ["chat", "responses"]
    assert settings.backends["vllm-b"].url == "http://127.0.0.1:8002"
    key = settings.keys[0].key
    assert key is not None and key.get_secret_value() == KEY


def test_every_default_of_the_example_is_the_default(tmp_path: Path) -> None:
    """What the design shows as a fixed section is what stands without that section."""
    written, bare = loaded(tmp_path, EXAMPLE, ENV), loaded(tmp_path, GOOD)
    for name in Settings.model_fields:
        if name not in ("models", "backends", "keys", "admin"):
            assert getattr(written, name) == getattr(bare, name), name


def test_defaults(tmp_path: Path) -> None:
    settings = loaded(tmp_path, GOOD)
    model, key = settings.models["small"], settings.keys[0]
    assert (model.experiment.name, model.experiment.unit) == ("default", "session")
    assert model.experiment.slo_ttft_ms is None and model.cross_arm_failover
    assert (key.models, key.arms, key.cache_salt, key.expose_arm) == (["*"], "any", False, True)
    assert (key.requests_per_minute, key.tokens_per_minute, key.max_concurrency) == (None,) * 3
    assert not key.engine_fields
    assert settings.backends["vllm-a"].max_concurrency == 256
    assert (settings.server.header_timeout, settings.server.body_timeout) == (10, 60)
    assert settings.server.max_header_kib == 64


@pytest.mark.parametrize("text", ["model: m\nport: 8000", "extends: baseline.yaml"])
def test_an_engine_s_configuration_is_told_from_a_gateway_s(tmp_path: Path, text: str) -> None:
    path = tmp_path / "engine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert caught.value.faults == [
        f"{path}: configures an engine, not the gateway: gateway check --engine {path}"
    ]


def test_json_is_a_configuration_too(tmp_path: Path) -> None:
    text = '{\n\t"models": {"m": {"arms": {"a": {"weight": 1, "backends": ["b"]}}}},\n'
    text += '\t"backends": {"b": {"url": "http://127.0.0.1:1"}},\n'
    text += f'\t"keys": [{{"name": "dev", "key": "{KEY}"}}]\n}}'
    assert list(loaded(tmp_path, text).models) == ["m"]


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    assert loaded(tmp_path, "\ufeff" + EXAMPLE, ENV).models


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("https://Pages.Example", "https://pages.example"),
        ("https://pages.example:443", "https://pages.example"),
        ("http://pages.example:80", "http://pages.example"),
        ("https://pages.example:80", "https://pages.example:80"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("*", "*"),
    ],
)
def test_an_origin_is_kept_as_browsers_send_it(written: str, sent: str) -> None:
    """They leave out the scheme's own port and know no capital letters."""
    assert ServerSettings(cors_origins=[written]).cors_origins == [sent]


def test_null_means_the_default(tmp_path: Path) -> None:
    settings = loaded(tmp_path, changed(("server", {"port": None}), ("timeouts", None)))
    assert settings.server.port == 8080
    assert settings.timeouts.total == 3600


def test_the_tree_is_frozen(tmp_path: Path) -> None:
    settings = loaded(tmp_path, GOOD)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(settings.server, "port", 1)  # noqa: B010  # mypy knows it is frozen


@pytest.mark.parametrize(
    ("roles", "control"),
    [
        ((None, None), "one"),
        (("canary", None), "two"),
        (("canary", "control"), "two"),
        ((None, "control"), "two"),
        (("canary", "baseline"), None),
    ],
)
def test_the_control_is_the_one_named_or_the_first_without_a_role(
    roles: tuple[str | None, str | None], control: str | None
) -> None:
    arms = {
        name: {"weight": 1, "role": role, "backends": [name]}
        for name, role in zip(("one", "two"), roles, strict=True)
    }
    assert Model.model_validate({"arms": arms}).control == control


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert caught.value.faults == [f"{path}: no such file; gateway init writes one"]
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, {})
    assert caught.value.faults == [f"{tmp_path}: cannot be read: Is a directory"]


def test_an_empty_file(tmp_path: Path) -> None:
    expected = [
        "models: is empty: name at least one model and its arms",
        "backends: is empty: name at least one server and its url",
        "keys: is empty: without a key nobody can ask; make one with: openssl rand -hex 32",
    ]
    assert faults(tmp_path, "") == expected
    assert faults(tmp_path, "# nothing yet\n") == expected
    assert faults(tmp_path, "{models: {}, backends: null, keys: []}") == expected
