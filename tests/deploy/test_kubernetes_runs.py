"""The containers of the simulated overlay, run as processes with their own arguments.

No cluster is needed. What a pod has for itself (a path, an address, a service's name) is replaced,
nothing else; then each of its probes is asked.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.support.deployment import write_secrets
from tests.support.kubernetes import configuration, container, of_kind
from tests.support.processes import process

pytestmark = pytest.mark.timeout(150)

GATEWAY = [sys.executable, "-m", "gateway"]
LOOPBACK = {"GATEWAY_SERVER__HOST": "127.0.0.1", "GATEWAY_SERVER__PORT": "0"}
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def test_every_container_starts_answers_its_probes_and_serves(tmp_path: Path) -> None:
    secrets = write_secrets(tmp_path)
    deployments = of_kind("simulated", "Deployment")
    gateway = container(deployments.pop("gateway"))
    text = (
        configuration("simulated", tmp_path).read_text().replace("/var/lib/gateway", str(tmp_path))
    )
    with ExitStack() as stack:
        for name, deployment in deployments.items():
            words = [
                {"0.0.0.0": "127.0.0.1", "8000": "0"}.get(word, word)
                for word in container(deployment)["args"]
            ]
            log = tmp_path / f"{name}.log"
            port = stack.enter_context(process([*GATEWAY, *words], log)).port()
            _probe(container(deployment), port)
            assert f"http://{name}:8000" in text
            text = text.replace(f"http://{name}:8000", f"http://127.0.0.1:{port}")
        (tmp_path / "gateway.yaml").write_text(text)
        words = [word.replace("/etc/gateway", str(tmp_path)) for word in gateway["args"]]
        running = stack.enter_context(process([*GATEWAY, *words], tmp_path / "log", LOOPBACK))
        _probe(gateway, running.port())
        assert _served(running.port(), secrets["gateway_key"]) == ["chunk-512", "chunk-64"]


def _probe(one: dict[str, dict[str, dict[str, str]]], port: int) -> None:
    for probe in PROBES:
        path = one[probe]["httpGet"]["path"]
        assert httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False).status_code == 200


def _served(port: int, key: str) -> list[str]:
    """The arms that answer when they are asked for."""
    found = []
    for arm in ("chunk-512", "chunk-64"):
        answer = httpx.post(
            f"http://127.0.0.1:{port}/v1/completions",
            headers={"authorization": f"Bearer {key}"},
            json={"model": f"llama-3-70b@{arm}", "prompt": "hello", "max_tokens": 1},
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        found.append(answer.headers["x-gateway-arm"])
    return found
