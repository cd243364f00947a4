"""A backend as the watch over engines sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.engines.parts import Own
from gateway.records import EngineFacts, TtftParts
from gateway.settings import BackendSettings
from gateway.vllm.page import Total


@dataclass(eq=False)
class FakeBackend:
    name: str = "x"
    model: str = "m"
    arm: str = "a"
    url: str = "http://h:1/p"
    api_key: bytes | None = b"s3cret"
    facts: EngineFacts | None = None
    ttft_parts: TtftParts | None = None
    probe_failures: int = 0
    settings: BackendSettings = field(default_factory=lambda: BackendSettings(url="http://h:1/p"))

    @property
    def apis(self) -> frozenset[str] | None:
        return self.facts.apis if self.facts is not None else None


def nothing_of(backend: str) -> Own:
    """The sums of a gateway that has served nothing."""
    return Own(Total(0.0, 0), Total(0.0, 0))
