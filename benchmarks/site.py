"""What every proxy is given to start with."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path


def _fresh_key() -> str:
    return "sk-bench-" + secrets.token_hex(24)


@dataclass(frozen=True, slots=True)
class Site:
    """A folder of its own, the port to listen on, a spare one, two upstreams, and a key.

    Attributes:
        key: what clients will send; for a proxy that checks keys.
    """

    folder: Path
    port: int
    spare_port: int
    upstreams: tuple[int, int]
    key: str = field(default_factory=_fresh_key)

    @property
    def urls(self) -> list[str]:
        """The upstreams' base addresses."""
        return [f"http://127.0.0.1:{port}" for port in self.upstreams]
