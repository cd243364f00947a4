"""A launch as a compose service, and as a Deployment for Kubernetes."""

from __future__ import annotations

from typing import Any

from gateway.vllm.files import as_yaml, comments, referenced
from gateway.vllm.launch import Launch

MODELS = "/models"
"""Where downloaded models are kept, on a volume, if `HF_HOME` says nothing else."""


def compose(launch: Launch) -> str:
    """A compose file with one service, to be run as it is or merged into another.

    A `$` that compose would take for a reference is doubled.
    """
    config, environment = launch.config, _environment(launch)
    service: dict[str, Any] = {
        "image": _image(launch),
        # Images of different releases have different entry points.
        "entrypoint": ["vllm", "serve"],
        "command": [_doubled(word) for word in _arguments(launch)],
        "environment": {name: _compose_value(value) for name, value in environment.items()},
        "ports": [f"{config.port}:{config.port}"],
        "volumes": [f"models:{environment['HF_HOME']}"],
        # Tensor-parallel workers talk through shared memory.
        "ipc": "host",
        "healthcheck": {
            "test": ["CMD", "python3", "-c", _health_script(config.port)],
            "interval": "10s",
            "timeout": "5s",
            "start_period": "30m",
        },
        "deploy": {
            "resources": {
                "reservations": {
                    "devices": [{"driver": "nvidia", "count": launch.gpus, "capabilities": ["gpu"]}]
                }
            }
        },
    }
    return _page(launch, {"services": {config.name: service}, "volumes": {"models": None}})


def kubernetes(launch: Launch) -> str:
    """A Deployment of one replica; the claim NAME-models it keeps downloaded models on is yours.

    A `$` that Kubernetes could take for a reference is doubled. Variables that are passed on
    come from a Secret with the Deployment's name.
    """
    config, environment = launch.config, _environment(launch)
    labels = {"app.kubernetes.io/name": config.name}
    health = {"httpGet": {"path": "/health", "port": "http"}}
    container: dict[str, Any] = {
        "name": "vllm",
        "image": _image(launch),
        "command": ["vllm", "serve"],
        "args": [_doubled(word) for word in _arguments(launch)],
        "env": [_kubernetes_variable(config.name, *item) for item in environment.items()],
        "ports": [{"name": "http", "containerPort": config.port}],
        "resources": {"limits": {"nvidia.com/gpu": launch.gpus}},
        # Loading a large model takes minutes, in which it is neither alive nor dead.
        "startupProbe": {**health, "periodSeconds": 10, "failureThreshold": 180},
        "readinessProbe": {**health, "periodSeconds": 5},
        "livenessProbe": {**health, "periodSeconds": 10, "failureThreshold": 3},
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "models", "mountPath": environment["HF_HOME"]},
        ],
    }
    pod = {
        # For a Service called vllm it would set VLLM_PORT to an address, which vLLM reads, too.
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
            {"name": "models", "persistentVolumeClaim": {"claimName": f"{config.name}-models"}},
        ],
    }
    return _page(
        launch,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": config.name, "labels": labels},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                # Two at a time would need twice the GPUs.
                "strategy": {"type": "Recreate"},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        },
    )


def _page(launch: Launch, content: dict[str, Any]) -> str:
    return "".join(f"{line}\n" for line in comments(launch)) + as_yaml(content)


def _arguments(launch: Launch) -> list[str]:
    words = [word for one in launch.arguments for word in one.words(joined=True)]
    return [launch.config.model, *words]


def _environment(launch: Launch) -> dict[str, str]:
    return {"HF_HOME": MODELS} | launch.config.env


def _image(launch: Launch) -> str:
    return launch.config.image or f"vllm/vllm-openai:{launch.version.tag}"


def _doubled(text: str) -> str:
    return text.replace("$", "$$")


def _compose_value(value: str) -> str:
    name = referenced(value)
    return f"${{{name}:?}}" if name else _doubled(value)


def _kubernetes_variable(secret: str, name: str, value: str) -> dict[str, Any]:
    key = referenced(value)
    if key is None:
        return {"name": name, "value": _doubled(value)}
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def _health_script(port: int) -> str:
    return f"from urllib.request import urlopen; urlopen('http://127.0.0.1:{port}/health')"
