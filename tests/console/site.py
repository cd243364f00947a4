"""What the browser tests look at: a gateway, two simulated engines, a console, and traffic."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from gateway.demo.children import Child

MODEL = "llama-3-70b"
ARMS = {"chunk-512": 512, "chunk-64": 64}


def _key() -> str:
    return f"sk-{secrets.token_hex(24)}"


@dataclass
class Site:
    """Attributes:
    url: of the gateway.
    console: address of its console.
    """

    folder: Path
    url: str = ""
    console: str = ""
    key: str = field(default_factory=_key)
    admin_key: str = field(default_factory=_key)
    read_key: str = field(default_factory=_key)
    children: list[Child] = field(default_factory=list)

    def start(self) -> None:
        """Start everything, the console last."""
        engines = {}
        for arm, chunk in ARMS.items():
            arguments = ["sim", "--port", "0", "--model", MODEL, "--max-num-batched-tokens"]
            rest = [str(chunk), "--max-num-seqs", "64", "--preset", "h100-llama-70b"]
            engines[arm] = self._spawn(arm, [*arguments, *rest, "--speed", "4"])
        ports = {arm: self._port(child) for arm, child in engines.items()}
        config = self.folder / "gateway.yaml"
        config.write_text(yaml.safe_dump(self._configuration(ports), sort_keys=False))
        log = str(self.folder / "access.jsonl")
        gateway = self._spawn("gateway", ["serve", "-c", str(config), "--access-log", log])
        self.url = f"http://127.0.0.1:{self._port(gateway)}"
        console = self._spawn("console", ["console", "--url", self.url, "--port", "0"])
        self.console = f"http://127.0.0.1:{self._port(console)}"

    def admin(self, path: str, key: str = "") -> Any:
        """What the admin API says."""
        headers = {"authorization": f"Bearer {key or self.admin_key}"}
        reply = httpx.get(f"{self.url}/admin/v1/{path}", headers=headers, trust_env=False)
        return reply.raise_for_status().json()

    def said(self) -> str:
        """All that the console has written."""
        return (self.folder / "console.log").read_text()

    def _spawn(self, name: str, arguments: list[str]) -> Child:
        child = Child(name, arguments, self.folder / f"{name}.log", {"GATEWAY_KEY": self.key})
        self.children.append(child)
        return child

    def _port(self, child: Child) -> int:
        return asyncio.run(child.port())

    def _configuration(self, ports: dict[str, int]) -> dict[str, Any]:
        engine = {"max_num_seqs": 64, "prefix_caching": True}
        return {
            "server": {"port": 0, "drain_delay": 0, "drain_timeout": 1},
            "models": {
                MODEL: {
                    "experiment": {"name": "chunk-size"},
                    "arms": {arm: {"weight": 50, "backends": [arm]} for arm in ARMS},
                }
            },
            "backends": {
                arm: {
                    "url": f"http://127.0.0.1:{ports[arm]}",
                    "engine": {"max_num_batched_tokens": chunk, **engine},
                }
                for arm, chunk in ARMS.items()
            },
            "keys": [
                {"name": "dev", "key": self.key, "requests_per_minute": 6000},
                {"name": "spare", "key": _key(), "models": [MODEL], "max_concurrency": 4},
            ],
            "admin": {"key": self.admin_key, "read_key": self.read_key},
            "database_url": f"sqlite:///{self.folder}/gateway.db",
        }


class Traffic(threading.Thread):
    """One small request after the other, each of a session of its own."""

    def __init__(self, site: Site) -> None:
        super().__init__(daemon=True)
        self._site = site
        self._over = threading.Event()

    def run(self) -> None:
        headers = {"authorization": f"Bearer {self._site.key}"}
        with httpx.Client(base_url=self._site.url, headers=headers, trust_env=False) as client:
            while not self._over.wait(0.1):
                self._ask(client)

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _ask(self, client: httpx.Client) -> None:
        session = secrets.token_hex(8)
        body = {
            "model": MODEL,
            "messages": [{"role": "user", "content": f"{session} " + "word " * 300}],
            "stream": True,
            "max_tokens": 4,
        }
        client.post("/v1/chat/completions", json=body, headers={"x-session-id": session})


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Site]:
    """Everything, with traffic."""
    site = Site(folder)
    try:
        site.start()
        traffic = Traffic(site)
        traffic.start()
        try:
            yield site
        finally:
            traffic.stop()
    finally:
        for child in reversed(site.children):
            child.stop()
