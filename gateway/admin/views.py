"""What the admin API says of models, requests, keys and changes; and what it takes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gateway.admin.backend_view import BackendView
from gateway.keys.keyring import Key
from gateway.keys.limits import Standing
from gateway.records import Api, NoToken, Outcome, Record, Timeline
from gateway.routing.table import Route
from gateway.settings.claims import drift
from gateway.settings.comparison import compare
from gateway.telemetry.by_key import KeyUse
from gateway.telemetry.log_lines import marks

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class WeightsBody(BaseModel):
    """New weights. Arms that are not named keep theirs."""

    model_config = ConfigDict(extra="forbid")

    weights: dict[str, Weight] = Field(min_length=1, max_length=1000)
    revision: int | None = Field(
        default=None, strict=True, description="Refuse unless this is the revision in force."
    )
    reason: str = Field(default="", max_length=500, description="Kept in the history.")


class BackendBody(BaseModel):
    """Whether a backend takes requests."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = Field(strict=True)


class ArmView(BaseModel):
    """One engine configuration: `share` is its part of the model's traffic, from 0 to 1."""

    name: str
    role: str | None
    weight: float
    share: float
    file_weight: float = Field(description="The weight in the configuration file.")
    drift: list[str] = Field(description="In what its backends' engines differ.")
    backends: list[BackendView]


class ModelView(BaseModel):
    """One model: its arms, and the weights in force with their revision."""

    name: str
    aliases: list[str]
    upstream_model: str
    unit: str = Field(description="What is assigned to an arm: session, request or key.")
    slo_ttft_ms: float | None
    revision: int
    confounded: list[str] = Field(
        default=[],
        description="Why a difference between the arms need not come from their chunk settings.",
    )
    arms: list[ArmView]

    @classmethod
    def of(cls, route: Route) -> ModelView:
        settings = route.settings
        backends = {one.name: one.settings for arm in route.arms.values() for one in arm.backends}
        comparison = compare(settings.with_weights(route.weights), backends)
        total = sum(route.weights.values())
        arms = [
            ArmView(
                name=name,
                role=arm.role,
                weight=route.weights[name],
                share=route.weights[name] / total,
                file_weight=settings.arms[name].weight,
                drift=list(drift({one.name: one.facts for one in arm.backends if one.facts})),
                backends=[BackendView.of(backend) for backend in arm.backends],
            )
            for name, arm in route.arms.items()
        ]
        return cls(
            name=route.model,
            aliases=settings.aliases,
            upstream_model=settings.upstream_model or route.model,
            unit=settings.experiment.unit,
            slo_ttft_ms=settings.experiment.slo_ttft_ms,
            revision=route.revision,
            confounded=list(comparison.confounded) if comparison else [],
            arms=arms,
        )


class TtftView(BaseModel):
    """The time to first token and its parts, in milliseconds; they add up to `total_ms`.

    `gateway_ms` lasts from admission to the request being sent to the backend that answered, so
    it holds the attempts that failed, where there were any.
    """

    total_ms: float
    queue_ms: float
    gateway_ms: float
    engine_ms: float

    @classmethod
    def of(cls, timeline: Timeline) -> TtftView | None:
        """None unless a first token came."""
        start, admitted = timeline.body_complete, timeline.admitted
        sent, token = timeline.sent, timeline.first_token
        if start is None or admitted is None or sent is None or token is None:
            return None
        return cls(
            total_ms=_ms(token - start),
            queue_ms=_ms(admitted - start),
            gateway_ms=_ms(sent - admitted),
            engine_ms=_ms(token - sent),
        )


class UsageView(BaseModel):
    """Tokens; `exact` is false where a stream was cut and what was relayed was counted."""

    model_config = ConfigDict(from_attributes=True)

    prompt: int
    cached: int
    completion: int
    exact: bool


class RequestView(BaseModel):
    """One request that is over, without its content: where it went, why, and when."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    at: float = Field(description="Seconds since the epoch.")
    key: str
    model: str
    requested_model: str
    api: Api
    path: str
    stream: bool
    session: str = Field(description="A hash; the client's own identifier is not kept.")
    session_source: str
    assigned_arm: str
    arm: str = Field(description="Who served it, or was tried last.")
    backend: str
    backend_api: str = Field(description="The API it was asked in, in case it lacks the client's.")
    tried: list[str] = Field(description="Backends that failed this request before.")
    forced: bool = Field(description="The client chose the arm by hand.")
    weights: dict[str, float] = Field(description="As in force when it was assigned.")
    revision: int
    status: int
    outcome: Outcome
    no_token: NoToken | None
    error: str
    detail: str
    usage: UsageView | None
    bytes_in: int
    bytes_out: int
    marks: dict[str, float | None] = Field(
        default={}, description="Milliseconds since the request's head was received."
    )
    ttft: TtftView | None = None

    @classmethod
    def of(cls, record: Record) -> RequestView:
        view = cls.model_validate(record)
        timeline = record.timeline
        ttft = TtftView.of(timeline) if record.stream else None
        return view.model_copy(update={"marks": marks(timeline), "ttft": ttft})


class KeyUseView(BaseModel):
    """What a key has used since the gateway started."""

    model_config = ConfigDict(from_attributes=True)

    requests: int = Field(description="All that ended, the refused ones included.")
    prompt_tokens: int = Field(description="The cached ones included.")
    cached_prompt_tokens: int
    completion_tokens: int
    refused: dict[str, int] = Field(description="Requests the gateway turned away, by reason.")


class KeyView(BaseModel):
    """A key by its name: what it may do, what it uses now and has used. None is no limit."""

    name: str
    models: list[str]
    arms: str | list[str] = Field(description="Arms it may choose by hand: any, none, or names.")
    requests_per_minute: int | None
    tokens_per_minute: int | None
    max_concurrency: int | None
    running: int
    requests_left: int | None
    tokens_left: int | None
    used: KeyUseView

    @classmethod
    def of(cls, key: Key, standing: Standing, use: KeyUse) -> KeyView:
        return cls(
            name=key.name,
            models=list(key.models),
            arms=key.arms if isinstance(key.arms, str) else list(key.arms),
            requests_per_minute=key.requests_per_minute,
            tokens_per_minute=key.tokens_per_minute,
            max_concurrency=key.max_concurrency,
            running=standing.running,
            requests_left=standing.requests_left,
            tokens_left=standing.tokens_left,
            used=KeyUseView.model_validate(use),
        )


class ChangeView(BaseModel):
    """One change of a model's weights."""

    model_config = ConfigDict(from_attributes=True)

    model: str
    revision: int
    at: datetime
    by: str
    reason: str
    before: dict[str, float]
    after: dict[str, float]


class ReloadView(BaseModel):
    """What a reload changed, one line a setting; empty if the file says what it said before."""

    changed: list[str]


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
