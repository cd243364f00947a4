"""What a configuration means, as figures and sentences; `gateway check` shows it."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.settings import KeySettings, Model, Settings
from gateway.settings.advice import advice
from gateway.settings.comparison import Comparison, compare, loads, shares


@dataclass(frozen=True, slots=True)
class ArmMeaning:
    """One arm, with its role also where it has it by default.

    `share` and `load_per_backend` are parts of the model's traffic, from 0 to 1.
    """

    name: str
    role: str | None
    weight: float
    share: float
    backends: list[str]
    load_per_backend: float


@dataclass(frozen=True, slots=True)
class ModelMeaning:
    """One model. `comparison` is None where fewer than two arms get traffic to compare."""

    name: str
    aliases: list[str]
    upstream_model: str
    experiment: str
    unit: str
    slo_ttft_ms: float | None
    arms: list[ArmMeaning]
    comparison: Comparison | None


@dataclass(frozen=True, slots=True)
class KeyMeaning:
    """One key, by name alone. None is no limit; `arms` says which it may choose by hand."""

    name: str
    models: list[str]
    requests_per_minute: int | None
    tokens_per_minute: int | None
    max_concurrency: int | None
    arms: str | list[str]


@dataclass(frozen=True, slots=True)
class Meaning:
    """The whole configuration."""

    models: list[ModelMeaning]
    keys: list[KeyMeaning]
    backends: int
    remarks: list[str]


def meaning(settings: Settings) -> Meaning:
    """What settings without faults mean."""
    return Meaning(
        [_model(name, model, settings) for name, model in settings.models.items()],
        [_key(key) for key in settings.keys],
        len(settings.backends),
        advice(settings),
    )


def _model(name: str, model: Model, settings: Settings) -> ModelMeaning:
    share, load = shares(model), loads(model)
    control = model.control
    return ModelMeaning(
        name=name,
        aliases=model.aliases,
        upstream_model=model.upstream_model or name,
        experiment=model.experiment.name,
        unit=model.experiment.unit,
        slo_ttft_ms=model.experiment.slo_ttft_ms,
        arms=[
            ArmMeaning(
                arm,
                one.role or ("control" if arm == control else None),
                one.weight,
                share[arm],
                one.backends,
                load[arm],
            )
            for arm, one in model.arms.items()
        ],
        comparison=compare(model, settings.backends),
    )


def _key(key: KeySettings) -> KeyMeaning:
    return KeyMeaning(
        key.name,
        key.models,
        key.requests_per_minute,
        key.tokens_per_minute,
        key.max_concurrency,
        key.arms,
    )
