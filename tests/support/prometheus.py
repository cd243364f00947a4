"""Debian's Prometheus: its command-line tool, what is deployed for it, and a running one."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml

DEPLOYED = Path(__file__).parents[2] / "deploy" / "prometheus"


class Series(NamedTuple):
    """One element of an instant vector."""

    labels: dict[str, str]
    value: float


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`; skips where it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: apt-get install prometheus")
    return found


def promtool(*arguments: str, stdin: str | None = None) -> str:
    """What promtool says; its complaints fail the test."""
    done = subprocess.run(
        [program("promtool"), *arguments], input=stdin, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def rules() -> list[dict[str, Any]]:
    """Every recording and alerting rule, in the order of evaluation within a file."""
    files = sorted((DEPLOYED / "rules").glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def deployed(folder: Path, key: str = "sk-metrics") -> Path:
    """A copy of what is deployed, as an operator completes it with the gateway's metrics key."""
    copy = folder / "prometheus"
    shutil.copytree(DEPLOYED, copy, ignore=shutil.ignore_patterns("tests", "secrets"))
    (copy / "secrets").mkdir()
    (copy / "secrets" / "metrics_key").write_text(key)
    return copy


class Prometheus:
    """A running Prometheus.

    Args:
        client: with its address.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def query(self, expression: str) -> list[Series]:
        """The instant vector that an expression has now."""
        answer = self._client.post("/api/v1/query", data={"query": expression})
        found = answer.json()
        assert found["status"] == "success", f"{expression}: {found}"
        assert found["data"]["resultType"] == "vector", expression
        return [Series(one["metric"], float(one["value"][1])) for one in found["data"]["result"]]

    def wait(self, expression: str, within: float = 20.0) -> list[Series]:
        """Wait until the expression has data."""
        deadline = time.monotonic() + within
        while not (found := self.query(expression)):
            assert time.monotonic() < deadline, f"no data for {expression}"
            time.sleep(0.2)
        return found

    def ready(self) -> bool:
        try:
            return self._client.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def scraping(
    folder: Path, key: str, targets: dict[str, list[dict[str, Any]]]
) -> Iterator[Prometheus]:
    """Run Prometheus as deployed, but for its targets and a scrape every second.

    Args:
        key: the gateway's metrics key.
        targets: by the name of their file, what stands in it.
    """
    home = deployed(folder, key)
    for name, entries in targets.items():
        (home / "targets" / f"{name}.yml").write_text(yaml.safe_dump(entries))
    file = home / "prometheus.yml"
    settings = yaml.safe_load(file.read_text())
    settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    file.write_text(yaml.safe_dump(settings))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = folder / "prometheus.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={file}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        with httpx.Client(base_url=f"http://{address}", trust_env=False, timeout=10) as client:
            prometheus = Prometheus(client)
            deadline = time.monotonic() + 20
            while not prometheus.ready():
                assert process.poll() is None and time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield prometheus
    finally:
        process.terminate()
        process.wait(10)
