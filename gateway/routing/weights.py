"""Who sets the weights: the file, until someone sets others while the gateway runs.

The file's weights are the baseline. An override stands in for the baseline of one arm and holds
for as long as the file says what it said when the override was set, across reloads and restarts;
once the file says something else for that arm, the file counts again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from gateway.errors import BadRequest, ConfigError, Conflict, NotFound
from gateway.settings import Model
from gateway.settings.types import Weight
from gateway.state.store import (
    Override,
    RevisionTaken,
    StateFailed,
    Store,
    WeightChange,
    WeightUpdate,
)

BY_FILE = "file"
LONGEST_REASON = 500

SHARED_DATABASE = (
    "Another gateway process has changed these weights in the same database, which only one may "
    "use; nothing was changed. Stop the other one or reload this one, then try again."
)

_weight = TypeAdapter[float](Weight)


@dataclass(frozen=True, slots=True)
class Weights:
    """A model's weights in force and where they come from. Replaced as a whole, never changed.

    Attributes:
        baseline: the file's weight of every arm, in the file's order.
        overrides: what stands in for them, by arm.
        effective: the weights in force, of which at least one is above zero.
        revision: rises by one with every change of `effective`, also across restarts.
    """

    baseline: dict[str, float]
    overrides: dict[str, Override]
    effective: dict[str, float]
    revision: int


class WeightBook:
    """The weights in force of every model, kept in the store. Safe from several threads.

    Whoever changes something here also tells the routes: nothing follows by itself.

    Args:
        store: open.
        wall_clock: seconds since the epoch, for the history.
    """

    def __init__(self, store: Store, wall_clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._models: dict[str, Weights] = {}

    def follow(self, models: Mapping[str, Model]) -> None:
        """Take over a configuration's weights, at start and at every reload.

        Overrides are dropped of arms whose weight in the file is another than the one they were
        set against, of arms and models that are gone, and of all arms of a model that would
        otherwise have no weight left.

        Args:
            models: valid: each has an arm with a weight above zero.

        Raises:
            ConfigError: what changed could not be stored; the weights before stay in force.
        """
        with self._lock:
            try:
                self._models = self._followed(models)
            except RevisionTaken as error:
                raise _not_kept("another process that uses the database changed them") from error
            except StateFailed as error:
                raise _not_kept(error.detail) from error

    def of(self, model: str) -> Weights:
        """The weights of a model.

        Raises:
            NotFound: names the models there are.
        """
        weights = self._models.get(model)
        if weights is None:
            raise NotFound(
                f"There is no model `{model[:128]}`; there are {_listed(self._models)}.",
                code="model_not_found",
            )
        return weights

    def set(
        self, model: str, weights: Mapping[str, object], revision: int | None, reason: str, by: str
    ) -> int:
        """Override weights, durably; arms that are not named keep theirs.

        Args:
            weights: by arm; checked here.
            revision: the one the caller has seen; None for whatever is in force.
            reason, by: for the history.

        Returns:
            The revision in force now; the same as before if nothing changed.

        Raises:
            NotFound: there is no such model.
            BadRequest: an unknown arm, a weight that is none, or all of them zero.
            Conflict: another change came first; states the revision in force.
            StateFailed: the change could not be stored, so it was not made.
        """
        with self._lock:
            old = self.of(model)
            asked = _checked(model, weights, old)
            if len(reason) > LONGEST_REASON:
                raise BadRequest(
                    f"A reason has at most {LONGEST_REASON} characters.", param="reason"
                )
            if revision is not None and revision != old.revision:
                raise _conflict(model, old.revision)
            at = self._wall_clock()
            new = _overridden(old, asked, by=by, reason=reason, at=at)
            if new.effective == old.effective:
                return old.revision
            change = WeightChange(model, new.revision, at, by, reason, old.effective, new.effective)
            try:
                self._store.save_weights([WeightUpdate(model, new.overrides, change)])
            except RevisionTaken:
                raise Conflict(SHARED_DATABASE) from None
            self._models[model] = new
            return new.revision

    def history(self, model: str | None = None, limit: int = 100) -> list[WeightChange]:
        """Changes of one model's weights, or of all models', the newest first."""
        return self._store.history(model, limit)

    def _followed(self, models: Mapping[str, Model]) -> dict[str, Weights]:
        latest, overrides = self._store.latest_changes(), self._store.overrides()
        at = self._wall_clock()
        followed: dict[str, Weights] = {}
        updates: list[WeightUpdate] = []
        for model in {**models, **latest}:
            baseline = _baseline(models[model]) if model in models else {}
            last, old = latest.get(model), overrides.get(model, {})
            before, revision = (last.after, last.revision) if last else ({}, 0)
            kept, effective = _merge(baseline, old)
            change = None
            if effective != before:
                revision += 1
                reason = _reason(before, effective, dropped=old.keys() - kept.keys())
                change = WeightChange(model, revision, at, BY_FILE, reason, before, effective)
            if change is not None or kept != old:
                updates.append(WeightUpdate(model, kept, change))
            if model in models:
                followed[model] = Weights(baseline, kept, effective, revision)
        if updates:
            self._store.save_weights(updates)
        return followed


def _baseline(model: Model) -> dict[str, float]:
    return {name: arm.weight for name, arm in model.arms.items()}


def _merge(
    baseline: dict[str, float], overrides: Mapping[str, Override]
) -> tuple[dict[str, Override], dict[str, float]]:
    """The overrides that hold over this baseline, and the weights that result."""
    kept = {arm: one for arm, one in overrides.items() if baseline.get(arm) == one.baseline}
    effective = {arm: kept[arm].weight if arm in kept else baseline[arm] for arm in baseline}
    if not any(effective.values()):
        return {}, baseline
    return kept, effective


def _reason(before: dict[str, float], after: dict[str, float], dropped: set[str]) -> str:
    if not after:
        said = "the model left the file"
    else:
        said = "the file changed" if before else "the model came into the file"
    return said + (f"; overrides dropped: {', '.join(sorted(dropped))}" if dropped else "")


def _overridden(
    old: Weights, asked: Mapping[str, float], *, by: str, reason: str, at: float
) -> Weights:
    revision = old.revision + 1
    overrides = dict(old.overrides)
    for arm, weight in asked.items():
        baseline = old.baseline[arm]
        if weight == old.effective[arm]:
            continue
        if weight == baseline:
            # Back to the file: an override that says the same would never be told apart from it.
            del overrides[arm]
        else:
            overrides[arm] = Override(weight, baseline, revision, by, reason, at)
    effective = {**old.effective, **asked}
    return Weights(old.baseline, overrides, effective, revision)


def _checked(model: str, weights: Mapping[str, object], old: Weights) -> dict[str, float]:
    if not weights:
        raise BadRequest(
            f"No weights were given; model `{model}` has the arms {_listed(old.baseline)}.",
            param="weights",
        )
    asked = {arm: _checked_one(model, arm, value, old) for arm, value in weights.items()}
    if not any({**old.effective, **asked}.values()):
        raise BadRequest(
            f"This would leave no arm of model `{model}` with a weight above zero; give one to "
            f"at least one of {_listed(old.baseline)}.",
            param="weights",
        )
    return asked


def _checked_one(model: str, arm: str, value: object, old: Weights) -> float:
    if arm not in old.baseline:
        raise BadRequest(
            f"Model `{model}` has no arm `{arm[:64]}`; it has {_listed(old.baseline)}.",
            param="weights",
            code="arm_not_found",
        )
    try:
        return _weight.validate_python(value, strict=True)
    except ValidationError as error:
        said = error.errors()[0]["msg"]
        raise BadRequest(f"The weight of arm `{arm}` {said}.", param=f"weights.{arm}") from None


def _not_kept(why: str | None) -> ConfigError:
    return ConfigError([f"database_url: the weights cannot be stored: {why}"])


def _conflict(model: str, revision: int) -> Conflict:
    return Conflict(
        f"The weights of model `{model}` are at revision {revision} now, not the one this change "
        f"was made for. Look at them again, and repeat the change with revision {revision}.",
        param="revision",
    )


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
