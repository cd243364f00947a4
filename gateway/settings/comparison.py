"""Whether a model's arms can be compared as configured (DESIGN §11). Pure.

Arms are comparable at equal load per backend and with engines that differ in the chunk settings
alone. A baseline arm (control's configuration at the canary's size and weight) takes control's
place in the comparison, which frees control to carry the bulk of the traffic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose

from gateway.settings.tree import BackendSettings, EngineSettings, Model

CHUNK_SETTINGS = frozenset({"max_num_batched_tokens"})
"""What arms are meant to differ in."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison of a model's arms would show.

    Attributes:
        reference: the arm the others are compared with.
        others: the arms compared with it.
        confounded: why a difference between them need not come from the chunk settings; empty
            for a comparison that holds.
        cautions: what to bear in mind although the comparison holds.
    """

    reference: str
    others: tuple[str, ...]
    confounded: tuple[str, ...]
    cautions: tuple[str, ...]


def shares(model: Model) -> dict[str, float]:
    """Each arm's part of the traffic, from 0 to 1, by the weights of the file."""
    total = sum(arm.weight for arm in model.arms.values())
    return {name: arm.weight / total for name, arm in model.arms.items()}


def loads(model: Model) -> dict[str, float]:
    """Each arm's share for each of its backends, from 0 to 1."""
    return {name: share / len(model.arms[name].backends) for name, share in shares(model).items()}


def compare(model: Model, backends: Mapping[str, BackendSettings]) -> Comparison | None:
    """How the arms that get traffic compare; None where fewer than two do."""
    load = {name: part for name, part in loads(model).items() if part > 0}
    baselines = [name for name in load if model.arms[name].role == "baseline"]
    control = [name for name in load if name == model.control]
    if baselines:
        load = {name: part for name, part in load.items() if name not in control}
    if len(load) < 2:
        return None
    reference = next(iter([*baselines, *control, *load]))
    others = tuple(name for name in load if name != reference)
    engines = {name: _engines(model, name, backends) for name in load}
    return Comparison(
        reference,
        others,
        confounded=(
            *_uneven(reference, others, load),
            *_same_server(reference, others, model, backends),
            *_engine_differences(reference, others, engines),
            *_unlike_control(baselines, model, backends),
        ),
        cautions=(
            *_one_machine_each((reference, *others), model),
            *_unknown_engines(engines),
            *_no_difference(reference, others, engines),
        ),
    )


def _engines(
    model: Model, arm: str, backends: Mapping[str, BackendSettings]
) -> list[EngineSettings | None]:
    return [backends[name].engine for name in model.arms[arm].backends]


def _uneven(reference: str, others: tuple[str, ...], load: Mapping[str, float]) -> list[str]:
    return [
        f"a backend of {name} gets {100 * load[name]:.4g} % of the traffic, one of {reference} "
        f"{100 * load[reference]:.4g} %: choose weights in proportion to the number of backends, "
        "or add a baseline arm"
        for name in others
        if not isclose(load[name], load[reference], rel_tol=1e-9)
    ]


def _same_server(
    reference: str,
    others: tuple[str, ...],
    model: Model,
    backends: Mapping[str, BackendSettings],
) -> list[str]:
    own = {backends[name].url: name for name in model.arms[reference].backends}
    return [
        f"{name} of {arm} and {own[backends[name].url]} of {reference} are the same server, "
        f"{backends[name].url}"
        for arm in others
        for name in model.arms[arm].backends
        if backends[name].url in own
    ]


def _engine_differences(
    reference: str, others: tuple[str, ...], engines: Mapping[str, list[EngineSettings | None]]
) -> list[str]:
    found = []
    for name in (reference, *others):
        mixed = _differing(engines[name], engines[name])
        if mixed:
            found.append(f"the backends of {name} differ among themselves in {', '.join(mixed)}")
    for name in others:
        differing = [
            field
            for field in _differing(engines[reference], engines[name])
            if field not in CHUNK_SETTINGS
        ]
        if differing:
            found.append(
                f"{name} differs from {reference} in {', '.join(differing)}, not only in the "
                "chunk settings"
            )
    return found


def _unlike_control(
    baselines: list[str], model: Model, backends: Mapping[str, BackendSettings]
) -> list[str]:
    control = model.control
    if control is None:
        return []
    engines = _engines(model, control, backends)
    return [
        f"the baseline {name} differs from the control {control} in {', '.join(differing)}: it "
        "must run the same"
        for name in baselines
        if (differing := _differing(_engines(model, name, backends), engines))
    ]


def _differing(left: list[EngineSettings | None], right: list[EngineSettings | None]) -> list[str]:
    """The settings in which two engines differ; what is not stated differs from nothing."""
    return [
        field
        for field in EngineSettings.model_fields
        if len(_values(left, field) | _values(right, field)) > 1
    ]


def _values(engines: list[EngineSettings | None], field: str) -> set[object]:
    values = {getattr(engine, field) for engine in engines if engine is not None}
    return values - {None}


def _one_machine_each(arms: tuple[str, ...], model: Model) -> list[str]:
    single = [name for name in arms if len(model.arms[name].backends) == 1]
    if not single:
        return []
    have = "has one backend" if len(single) == 1 else "have one backend each"
    return [
        f"{' and '.join(single)} {have}: the comparison is one of machines as much as of "
        "configurations"
    ]


def _unknown_engines(engines: Mapping[str, list[EngineSettings | None]]) -> list[str]:
    unknown = [name for name, of_arm in engines.items() if None in of_arm]
    if not unknown:
        return []
    return [
        f"not every backend of {' and '.join(unknown)} states its engine, so other differences "
        "may go unseen"
    ]


def _no_difference(
    reference: str, others: tuple[str, ...], engines: Mapping[str, list[EngineSettings | None]]
) -> list[str]:
    return [
        f"{name} and {reference} state the same max_num_batched_tokens: there is nothing to find"
        for name in others
        if (values := _values(engines[name], "max_num_batched_tokens"))
        and values == _values(engines[reference], "max_num_batched_tokens")
    ]
