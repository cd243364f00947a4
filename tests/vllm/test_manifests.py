"""Compose and Kubernetes: what a reader of them would do with the text."""

from __future__ import annotations

from typing import Any

import yaml

from gateway.vllm import EngineConfig, Version, compose, kubernetes, launch

CONFIG = EngineConfig(
    model="org/model",
    name="chunk-512",
    tensor_parallel_size=4,
    max_num_batched_tokens=512,
    port=8100,
    flags={"chat-template": "$(x) $Y"},
    env={"HF_TOKEN": "${TOKEN}", "PRICE": "5$ $(x)"},
)


def service(config: EngineConfig = CONFIG, version: str = "0.32") -> dict[str, Any]:
    page = yaml.safe_load(compose(launch(config, Version.parse(version))))
    found: dict[str, Any] = page["services"][config.name]
    return found


def pod(config: EngineConfig = CONFIG, version: str = "0.32") -> dict[str, Any]:
    page = yaml.safe_load(kubernetes(launch(config, Version.parse(version))))
    found: dict[str, Any] = page["spec"]["template"]["spec"]
    return found


def test_compose_starts_the_same_server_whatever_the_image_s_entry_point() -> None:
    found = service()

    assert found["image"] == "vllm/vllm-openai:v0.32.0"
    assert found["entrypoint"] == ["vllm", "serve"]
    assert found["command"] == [
        "org/model",
        "--port=8100",
        "--tensor-parallel-size=4",
        "--max-num-batched-tokens=512",
        "--chat-template=$$(x) $$Y",
    ]
    assert found["ports"] == ["8100:8100"]
    (devices,) = found["deploy"]["resources"]["reservations"]["devices"]
    assert devices["count"] == 4


def test_compose_passes_variables_on_and_keeps_dollars() -> None:
    assert service()["environment"] == {
        "HF_HOME": "/models",
        "HF_TOKEN": "${TOKEN:?}",
        "PRICE": "5$$ $$(x)",
    }


def test_kubernetes_takes_secrets_from_a_secret_and_keeps_dollars() -> None:
    (container,) = pod()["containers"]

    assert container["env"] == [
        {"name": "HF_HOME", "value": "/models"},
        {
            "name": "HF_TOKEN",
            "valueFrom": {"secretKeyRef": {"name": "chunk-512", "key": "TOKEN"}},
        },
        {"name": "PRICE", "value": "5$$ $$(x)"},
    ]
    assert container["args"][-1] == "--chat-template=$$(x) $$Y"


def test_what_kubernetes_would_read_as_one_dollar_stays_two() -> None:
    config = EngineConfig(model="m", env={"PASSWORD": "pa$$word"}, flags={"chat-template": "$$(x)"})
    container = pod(config)["containers"][0]
    assert container["env"][-1] == {"name": "PASSWORD", "value": "pa$$$$word"}
    assert container["args"][-1] == "--chat-template=$$$$(x)"


def test_kubernetes_asks_for_gpus_and_waits_for_the_model() -> None:
    (container,) = pod()["containers"]

    assert container["resources"] == {"limits": {"nvidia.com/gpu": 4}}
    assert container["ports"] == [{"name": "http", "containerPort": 8100}]
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 1800
    assert pod()["enableServiceLinks"] is False


def test_an_image_and_a_place_for_models_of_one_s_own() -> None:
    config = EngineConfig(model="m", image="registry.example/vllm:7", env={"HF_HOME": "/cache"})

    assert service(config)["image"] == "registry.example/vllm:7"
    assert service(config)["volumes"] == ["models:/cache"]
    (container,) = pod(config)["containers"]
    assert {"name": "models", "mountPath": "/cache"} in container["volumeMounts"]


def test_remarks_stand_above() -> None:
    config = EngineConfig(model="m", flags={"swap-space": 4})

    for text in (compose(launch(config)), kubernetes(launch(config))):
        assert text.splitlines()[:2] == [
            "# For vLLM 0.32.",
            "# --swap-space is left out: removed after 0.16.0 (preempted requests are computed "
            "anew, not swapped out)",
        ]
