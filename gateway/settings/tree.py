"""The settings tree: what a configuration file may say, with the names it says it by.

Checks that concern one value stand here; those that compare values are in `crosschecks`, which
`load` runs beside these so that every fault is reported at once. All models are frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gateway.settings.types import (
    BackendUrl,
    Count,
    CountOrZero,
    DatabaseUrl,
    EngineVersion,
    HeaderName,
    HeaderValue,
    Host,
    KeyName,
    ModelName,
    ModelPattern,
    Name,
    NoRepeats,
    Origin,
    OtlpEndpoint,
    Percent,
    Port,
    Positive,
    PositiveOrZero,
    ProxyUrl,
    Ratio,
    Rising,
    Secret,
    Sha256,
    Share,
    ValkeyUrl,
    Weight,
    Workers,
)
from gateway.vllm import EngineConfig, Version
from gateway.vllm.kinds import LIST, WORD, Text, word_or_list

RelayedApi = Literal["chat", "completions", "messages", "responses", "embeddings"]
RELAYED_APIS: tuple[str, ...] = get_args(RelayedApi)


class Section(BaseModel):
    """A mapping of the file: unknown keys are faults, and null means the default."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = cls.model_fields
            return {
                name: value
                for name, value in data.items()
                if value is not None or name not in known
            }
        return data


class ServerSettings(Section):
    """Where the gateway listens, and what it bears. Times in seconds; port 0 takes a free one."""

    host: Host = "127.0.0.1"
    port: Port = 8080
    workers: Workers = 1
    max_body_mib: Count = 32
    max_header_kib: Count = 64
    header_timeout: Positive = 10.0
    body_timeout: Positive = 60.0
    drain_delay: PositiveOrZero = 5.0
    drain_timeout: PositiveOrZero = 600.0
    cors_origins: list[Origin] = []


class ExperimentSettings(Section):
    """A model's arms under comparison; `slo_ttft_ms` is the time to first token to keep."""

    name: Name = "default"
    unit: Literal["session", "request", "key"] = "session"
    slo_ttft_ms: Positive | None = None


class ArmSettings(Section):
    """One engine configuration: its weight among the model's arms and the servers that run it."""

    weight: Weight
    role: Literal["control", "canary", "baseline"] | None = None
    backends: Annotated[list[Name], Field(min_length=1), NoRepeats]


class Model(Section):
    """What clients name, and the arms that serve it."""

    aliases: list[ModelPattern] = []
    upstream_model: Text | None = None
    max_output_tokens: Count | None = None
    context_window: Count | None = None
    experiment: ExperimentSettings = ExperimentSettings()
    arms: dict[Name, ArmSettings] = Field(min_length=1)
    cross_arm_failover: bool = True

    @property
    def control(self) -> str | None:
        """The arm others are compared with: the one so named, else the first without a role."""
        named = [name for name, arm in self.arms.items() if arm.role == "control"]
        free = [name for name, arm in self.arms.items() if arm.role is None]
        return next(iter(named + free), None)

    def with_weights(self, weights: Mapping[str, float]) -> Model:
        """The same model with these weights, by arm."""
        arms = {
            name: arm.model_copy(update={"weight": weights[name]})
            for name, arm in self.arms.items()
        }
        return self.model_copy(update={"arms": arms})


class EngineSettings(Section):
    """How a backend's engine was started, as far as the operator says; verified where it can be."""

    version: EngineVersion | None = None
    max_num_batched_tokens: Count | None = None
    max_num_seqs: Count | None = None
    block_size: Count | None = None
    prefix_caching: bool | None = None
    gpu_memory_utilization: Share | None = None

    def config(self, model: str, max_model_len: int | None) -> EngineConfig:
        """As a configuration of vLLM, to be checked; what is not stated is not known.

        Raises:
            pydantic.ValidationError: a model name or window that is none; those of valid settings
                are some.
        """
        return EngineConfig(
            model=model,
            max_model_len=max_model_len,
            # Cannot be stated here: who puts an engine behind this gateway means it to chunk.
            chunked_prefill=True,
            engine_version=Version.parse(self.version) if self.version else None,
            **self.model_dump(exclude={"version"}),
        )


class BackendSettings(Section):
    """One server process. `url` ends without a slash and without `/v1`; `proxy` carries all that
    goes there, and may hold credentials."""

    url: BackendUrl
    proxy: ProxyUrl | None = None
    api_key: Secret | None = None
    engine: EngineSettings | None = None
    apis: Annotated[
        Annotated[Literal["auto"], WORD]
        | Annotated[list[RelayedApi], Field(min_length=1), NoRepeats, LIST],
        word_or_list("auto", otherwise=f"must be auto, or a list of {', '.join(RELAYED_APIS)}"),
    ] = "auto"
    max_concurrency: Count = 256


class KeySettings(Section):
    """Who may ask, for which models and how much. Exactly one of `key` and `key_sha256` is set.

    `arms` says whether the key may choose an arm by hand; `engine_fields` whether it may pass
    fields that act on other keys' requests, such as `priority`.
    """

    name: KeyName
    key: Secret | None = None
    key_sha256: Sha256 | None = None
    models: Annotated[list[ModelPattern], Field(min_length=1)] = ["*"]
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    max_concurrency: Count | None = None
    arms: Annotated[
        Annotated[Literal["any", "none"], WORD]
        | Annotated[list[Name], Field(min_length=1), NoRepeats, LIST],
        word_or_list("any", "none", otherwise="must be any, none, or a list of arms"),
    ] = "any"
    cache_salt: bool = False
    expose_arm: bool = True
    engine_fields: bool = False


class AdminSettings(Section):
    """Keys of the admin API: `read_key` may only read. Without `key` the admin API is off."""

    key: Secret | None = None
    read_key: Secret | None = None


class MetricsSettings(Section):
    """The key `/metrics` asks for; without one it answers the machine itself only."""

    key: Secret | None = None


class TraceSettings(Section):
    """Where spans are sent, by OTLP over HTTP, and how many; without an endpoint there are none.

    `sample_ratio` is of the traces that begin here: in others the caller has decided. `headers`
    go with each export.
    """

    otlp_endpoint: OtlpEndpoint | None = None
    sample_ratio: Ratio = 1.0
    headers: dict[HeaderName, HeaderValue] = {}


class Timeouts(Section):
    """Limits of an exchange, in seconds."""

    connect: Positive = 2.0
    first_token: Positive = 600.0
    idle: Positive = 120.0
    total: Positive = 3600.0


class AdmissionSettings(Section):
    """The queue in front of a model: requests that may wait, and how long, in seconds."""

    queue_limit: CountOrZero = 1024
    queue_timeout: Positive = 30.0


class RolloutSettings(Section):
    """How a canary grows: `steps` in percent, `min_duration` of a step and `block` in seconds."""

    steps: Annotated[list[Percent], Field(min_length=1), Rising] = [1.0, 5.0, 25.0, 50.0, 100.0]
    min_duration: Positive = 600.0
    block: Positive = 30.0
    min_blocks: Count = 20
    max_requests: Count = 100_000


class FixedSections(Section):
    """The part whose shape does not depend on names, and which the environment can set too."""

    server: ServerSettings = ServerSettings()
    admin: AdminSettings = AdminSettings()
    metrics: MetricsSettings = MetricsSettings()
    traces: TraceSettings = TraceSettings()
    timeouts: Timeouts = Timeouts()
    admission: AdmissionSettings = AdmissionSettings()
    database_url: DatabaseUrl = "sqlite:///gateway.db"
    valkey_url: ValkeyUrl | None = None


class Settings(FixedSections):
    """The whole configuration."""

    models: dict[ModelName, Model] = {}
    backends: dict[Name, BackendSettings] = {}
    keys: list[KeySettings] = []
    keepalive_interval: Positive = 15.0
    rollout: RolloutSettings = RolloutSettings()
