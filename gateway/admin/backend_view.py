"""What the admin API says of a backend: its state, what its engine runs, and where time went."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from gateway.records import EngineFacts, TtftParts
from gateway.routing.backend import Backend
from gateway.routing.circuit import State
from gateway.settings import EngineSettings
from gateway.settings.claims import differences


class RunningView(BaseModel):
    """An engine's configuration as it says itself; null where it does not tell."""

    model_config = ConfigDict(from_attributes=True)

    max_num_batched_tokens: int | None
    max_num_seqs: int | None
    block_size: int | None
    cache_tokens: int | None
    prefix_caching: bool | None
    gpu_memory_utilization: float | None


class PartsView(BaseModel):
    """Where the time to first token went lately: means a streamed request, in milliseconds.

    The gateway's own part, the network's (with what of the engine's server is outside of the
    engine's clock), and of the engine its queue, its prefill and the rest; they add up.
    """

    model_config = ConfigDict(from_attributes=True)

    seconds: float = Field(description="How long the window is.")
    requests: int = Field(description="First tokens the gateway timed in it.")
    engine_requests: int = Field(description="First tokens the engine counted in it.")
    comparable: bool = Field(description="Whether both counted about the same requests.")
    total_ms: float
    gateway_ms: float
    network_ms: float
    engine_queue_ms: float | None
    engine_prefill_ms: float | None
    engine_other_ms: float

    @classmethod
    def of(cls, parts: TtftParts | None) -> PartsView | None:
        return None if parts is None else cls.model_validate(parts)


class BackendView(BaseModel):
    """One server. `usable`: it takes new requests now; `up`: its health probes succeed."""

    name: str
    model: str
    arm: str
    url: str
    usable: bool
    enabled: bool
    up: bool
    checked: bool = Field(description="A probe has been answered, or has failed, at least once.")
    circuit: State
    outstanding: int
    max_concurrency: int
    engine: EngineSettings | None = Field(description="As the configuration declares it.")
    running: RunningView | None = Field(description="As the running engine says.")
    differences: list[str] = Field(description="What runs otherwise than declared.")
    engine_version: str | None = Field(description="As the running engine says.")
    max_model_len: int | None = Field(description="As the running engine says.")
    apis: list[str] | None = Field(
        description="Those it serves: as configured, or as found; null while not known."
    )
    other_models: list[str] | None = Field(
        default=None, description="What it serves where it lacks the model it is asked for."
    )
    trouble: str = Field(default="", description="Why it is down: how its last probe failed.")
    ttft_parts: PartsView | None = Field(description="Null until first tokens were counted.")

    @classmethod
    def of(cls, backend: Backend) -> BackendView:
        facts, declared = backend.facts, backend.settings.engine
        others = facts.other_models if facts else None
        return cls(
            name=backend.name,
            model=backend.model,
            arm=backend.arm,
            url=backend.url,
            usable=backend.usable(),
            enabled=backend.enabled,
            up=backend.up,
            checked=backend.checked,
            circuit=backend.circuit.state,
            outstanding=backend.outstanding,
            max_concurrency=backend.max_concurrency,
            engine=declared,
            running=RunningView.model_validate(facts) if facts else None,
            differences=[str(one) for one in differences(declared, facts or EngineFacts())],
            engine_version=facts.version if facts else None,
            max_model_len=facts.max_model_len if facts else None,
            apis=sorted(backend.apis) if backend.apis is not None else None,
            other_models=list(others) if others is not None else None,
            trouble="" if backend.up else backend.trouble,
            ttft_parts=PartsView.of(backend.ttft_parts),
        )

    def state(self) -> str:
        """Whether it takes requests, and if not, why, in words."""
        if not self.enabled:
            return "taken out"
        if not self.up:
            return f"down (health probes fail{f': {self.trouble}' if self.trouble else ''})"
        if self.circuit != "closed":
            return f"circuit {self.circuit.replace('_', ' ')} (requests fail)"
        if self.other_models is not None:
            return f"up, but lacks its model (serves {next(iter(self.other_models), 'none')})"
        return "up" if self.checked else "up (not probed yet)"
