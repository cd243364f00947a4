"""Which models there are, and how a request finds its arm and its backend."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from math import isfinite
from operator import attrgetter

from gateway.routing.assign import choose, draw, salt_of
from gateway.routing.backend import Backend
from gateway.routing.circuit import Circuit
from gateway.settings import BackendSettings, Model, Settings

_WEIGHT = attrgetter("weight")


@dataclass(slots=True, eq=False)
class Arm:
    """One engine configuration of a model, and the backends that run it.

    Attributes:
        role: `control`, `canary`, `baseline` or None, as configured or by default.
    """

    name: str
    model: str
    weight: float = 0.0
    role: str | None = None
    backends: list[Backend] = field(default_factory=list)
    _salt: bytes = field(init=False)

    def __post_init__(self) -> None:
        # Not the arms' salt: an arm and a backend of one name would draw the same number.
        self._salt = salt_of("backend", self.model)

    def in_order(self, session: int, tried: Collection[str]) -> list[Backend]:
        """The usable backends not yet tried, best first; full ones are among them.

        First the session's own, whose prefix cache knows the conversation; if it is overloaded,
        by requests outstanding. The session's own is drawn among the usable ones, so that the
        sessions of a lost backend settle on one other each instead of wandering.
        """
        usable = [b for b in self.backends if b.usable() and b.name not in tried]
        if len(usable) < 2:
            return usable
        usable.sort(key=lambda backend: draw(self._salt, session, backend.name), reverse=True)
        home = usable[0]
        # A stable sort: between equal loads the session's own order decides.
        usable.sort(key=_load)
        if not _overloaded(home, least=usable[0].outstanding):
            usable.remove(home)
            usable.insert(0, home)
        return usable


def _load(backend: Backend) -> tuple[bool, int]:
    """Sorts the least loaded first, and full ones last."""
    return backend.outstanding >= backend.max_concurrency, backend.outstanding


def _overloaded(backend: Backend, least: int) -> bool:
    load = backend.outstanding
    return load >= backend.max_concurrency or load > 2 * least + 8


@dataclass(frozen=True, slots=True)
class _Split:
    weights: dict[str, float]
    revision: int
    live: tuple[tuple[str, float], ...]


class Route:
    """One model: its arms and how traffic is split among them.

    A route, its arms and its backends stay the same objects across reloads, so that whoever
    holds one (a request in the queue, say) acts on what is configured now.

    Attributes:
        salt: makes the split of every experiment independent of every other.
    """

    __slots__ = ("_split", "arms", "model", "salt", "settings")

    def __init__(self, model: str, settings: Model, backends: Mapping[str, list[Backend]]) -> None:
        self.model = model
        self.arms: dict[str, Arm] = {}
        self.configure(settings, backends)

    def configure(self, settings: Model, backends: Mapping[str, list[Backend]]) -> None:
        """Take these settings over, with the weights of the file at revision 0.

        Args:
            backends: those of each arm of the settings.
        """
        self.settings = settings
        self.salt = salt_of("arm", self.model, settings.experiment.name)
        self.close()
        self.arms = {name: self.arms.get(name) or Arm(name, self.model) for name in settings.arms}
        for name, arm in self.arms.items():
            default = "control" if name == settings.control else None
            arm.role = settings.arms[name].role or default
            arm.backends = backends[name]
        self.set_weights({name: arm.weight for name, arm in settings.arms.items()}, revision=0)

    def close(self) -> None:
        """Leave whoever still holds this route or its arms nothing to choose from."""
        for arm in self.arms.values():
            arm.backends = []

    @property
    def weights(self) -> dict[str, float]:
        """The weights in force, by arm; replaced as a whole, so it may be kept but not changed."""
        return self._split.weights

    @property
    def revision(self) -> int:
        """Which setting of the weights is in force."""
        return self._split.revision

    def set_weights(self, weights: Mapping[str, float], revision: int) -> None:
        """Put other weights in force, at once and as a whole.

        Raises:
            ValueError: the weights do not cover exactly the arms, or cannot be split by.
        """
        if weights.keys() != self.arms.keys():
            raise ValueError(f"weights for {sorted(weights)}, but the arms are {sorted(self.arms)}")
        if not all(isfinite(weight) and weight >= 0 for weight in weights.values()):
            raise ValueError("a weight is a finite number of at least zero")
        ordered = {name: float(weights[name]) for name in self.arms}
        live = tuple((name, weight) for name, weight in ordered.items() if weight > 0)
        if not live:
            raise ValueError("at least one arm needs a weight above zero")
        self._split = _Split(ordered, revision, live)
        for name, weight in ordered.items():
            self.arms[name].weight = weight

    @property
    def context_window(self) -> int | None:
        """Tokens the model takes, prompt and answer together, where it is known.

        What the settings say counts, else the least that any of its engines takes, since each of
        them may serve a request.
        """
        facts = (backend.facts for arm in self.arms.values() for backend in arm.backends)
        told = [one.max_model_len for one in facts if one is not None and one.max_model_len]
        return self.settings.context_window or min(told, default=None)

    def assign(self, session: int) -> Arm:
        """The arm this session belongs to, by the weights alone: health plays no part."""
        live = self._split.live
        name = live[0][0] if len(live) == 1 else choose(self.salt, session, live)
        return self.arms[name]

    def candidates(
        self, arm: Arm, session: int, tried: Collection[str], *, cross_arm: bool
    ) -> Iterator[Backend]:
        """Usable backends for a request assigned to `arm`, best first; the caller claims one.

        Other arms follow, largest weight first, only once `arm` has nothing left that works: a
        full arm is waited for, since moving its load elsewhere would bend the split and hide
        that the arm is slow. An arm of weight zero was taken out of service and gets nothing.

        Args:
            tried: names of backends that failed this request already.
            cross_arm: other arms may serve it.
        """
        own = arm.in_order(session, tried)
        yield from own
        if own or not cross_arm:
            return
        for other in sorted(self.arms.values(), key=_WEIGHT, reverse=True):
            if other is not arm and other.weight > 0:
                yield from other.in_order(session, tried)


class Table:
    """Every route and backend of one configuration. Belongs to the event loop's thread.

    Weights are those of the file until `Route.set_weights` says otherwise; after a reload the
    overrides in force have to be set again, before anything is awaited.

    Args:
        settings: valid, as `gateway.settings.load` returns them.
        clock: monotonic seconds, for the circuits.
        previous: the table in force so far. What still exists of it is taken over and changed in
            place, so it must not be used afterwards. A backend is the same while its name, url,
            key and proxy are; it then keeps its health, its circuit, its count of outstanding
            requests and whether the operator took it out. Others vanish from the table,
            and live on in the requests that run on them.
    """

    def __init__(
        self, settings: Settings, clock: Callable[[], float], previous: Table | None = None
    ) -> None:
        self._clock = clock
        self.routes: dict[str, Route] = {}
        self.backends: dict[str, Backend] = {}
        old_routes = dict(previous.routes) if previous else {}
        old_backends = previous.backends if previous else {}
        for model, part in settings.models.items():
            old = old_routes.get(model)
            renamed = old is not None and old.settings.upstream_model != part.upstream_model
            backends = {
                arm: [
                    self._backend(name, arm, model, settings.backends[name], old_backends.get(name))
                    for name in part.arms[arm].backends
                ]
                for arm in part.arms
            }
            if renamed:
                for backend in (one for arm in backends.values() for one in arm):
                    backend.facts = None  # they are about the model asked for until now
            route = old_routes.pop(model, None)
            if route is None:
                route = Route(model, part, backends)
            else:
                route.configure(part, backends)
            self.routes[model] = route
        for route in old_routes.values():
            route.close()
        # Every id that stands for itself alone: models, then aliases.
        self.named = self.routes | self._names(wild=False)
        self._patterns = [
            (re.compile(translate(pattern)), route)
            for pattern, route in sorted(self._names(wild=True).items(), key=_specificity)
        ]

    def resolve(self, requested: str) -> tuple[Route, str | None]:
        """The route for a model name as a client gave it, and the arm named by an `@arm` suffix.

        The arm need not exist, except where only a pattern knows the name before the `@`:
        `claude-*` takes `claude-opus-4@20250514` for a name of its own.

        Raises:
            KeyError: no model, alias or pattern matches.
        """
        route = self.named.get(requested)
        if route is not None:
            return route, None
        name, _, arm = requested.rpartition("@")
        if name:
            route = self.named.get(name)
            if route is not None:
                return route, arm
            route = self._by_pattern(name)
            if route is not None and arm in route.arms:
                return route, arm
        route = self._by_pattern(requested)
        if route is None:
            raise KeyError(requested)
        return route, None

    def _by_pattern(self, name: str) -> Route | None:
        return next((route for pattern, route in self._patterns if pattern.match(name)), None)

    def _names(self, *, wild: bool) -> dict[str, Route]:
        return {
            alias: route
            for route in self.routes.values()
            for alias in route.settings.aliases
            if _is_pattern(alias) is wild
        }

    def _backend(
        self, name: str, arm: str, model: str, settings: BackendSettings, old: Backend | None
    ) -> Backend:
        key = settings.api_key.get_secret_value().encode() if settings.api_key else None
        way = (settings.url, key, settings.proxy)
        if old is not None and (old.url, old.api_key, old.settings.proxy) == way:
            backend = old
            if backend.model != model:
                backend.facts = None
            backend.arm, backend.model, backend.settings = arm, model, settings
        else:
            circuit = Circuit(self._clock)
            backend = Backend(name, settings.url, key, arm, model, settings, circuit)
        self.backends[name] = backend
        return backend


def _is_pattern(alias: str) -> bool:
    return "*" in alias or "?" in alias


def _specificity(named: tuple[str, Route]) -> int:
    """Sorts the pattern with the most literal characters first."""
    pattern = named[0]
    return pattern.count("*") + pattern.count("?") - len(pattern)
