"""What the demo starts: two engines that differ in their chunk size, and a gateway."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass, field
from typing import Any

MODEL = "llama-3-70b"
PRESET = "h100-llama-70b"
CHUNKS = {"chunk-512": 512, "chunk-64": 64}
# vLLM refuses a budget below max_num_seqs, and it must not differ between the arms.
MAX_NUM_SEQS = 64
PORT = 8080
CONSOLE_PORT = 8090


def _key() -> str:
    return f"sk-{secrets.token_hex(24)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """One run of the demo.

    Attributes:
        speed: simulated seconds of the engines in a real one.
        key, admin_key: of the gateway.
        engine_key: what the gateway sends to the engines.
    """

    speed: float
    key: str = field(default_factory=_key)
    admin_key: str = field(default_factory=_key)
    engine_key: str = field(default_factory=_key)

    def engine_arguments(self, arm: str) -> list[str]:
        """The command line of an arm's engine."""
        options = {
            "--port": 0,
            "--model": MODEL,
            "--preset": PRESET,
            "--max-num-batched-tokens": CHUNKS[arm],
            "--max-num-seqs": MAX_NUM_SEQS,
            "--speed": self.speed,
        }
        return ["sim", *(str(word) for option in options.items() for word in option)]

    def console_arguments(self, url: str) -> list[str]:
        """The command line of the web console of the gateway at `url`."""
        return ["console", "--url", url, "--port", str(preferred_port(CONSOLE_PORT))]

    def configuration(self, engine_ports: dict[str, int], database: str) -> dict[str, Any]:
        """The gateway's configuration."""
        return {
            "server": {"port": preferred_port(PORT), "drain_delay": 0, "drain_timeout": 1},
            "models": {
                MODEL: {
                    "experiment": {"name": "chunk-size"},
                    "arms": {arm: {"weight": 50, "backends": [arm]} for arm in CHUNKS},
                }
            },
            "backends": {
                arm: {
                    "url": f"http://127.0.0.1:{port}",
                    "api_key": self.engine_key,
                    "engine": {
                        "max_num_batched_tokens": CHUNKS[arm],
                        "max_num_seqs": MAX_NUM_SEQS,
                        "prefix_caching": True,
                    },
                }
                for arm, port in engine_ports.items()
            },
            "keys": [{"name": "demo", "key": self.key}],
            "admin": {"key": self.admin_key},
            "database_url": f"sqlite:///{database}",
        }


def preferred_port(port: int) -> int:
    """`port` if nothing listens there, else 0 for any."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return 0
    return port
