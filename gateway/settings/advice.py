"""What a configuration without faults leaves out, so that nobody has to find out by surprise. Pure.

None of it keeps the gateway from running.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from ipaddress import ip_address

from gateway.settings.faults import Path, dotted
from gateway.settings.tree import EngineSettings, KeySettings, Model, Settings
from gateway.vllm import EVERY_VERSION, check


def advice(settings: Settings) -> list[str]:
    """Every remark, each as `path: what is so, and what follows`."""
    remarks = (
        *_models(settings),
        *_backends(settings),
        *_keys(settings),
        *_sections(settings),
    )
    return [f"{dotted(path)}: {text}" for path, text in remarks]


def _models(settings: Settings) -> Iterator[tuple[Path, str]]:
    for name, model in settings.models.items():
        path: Path = ("models", name)
        if model.experiment.slo_ttft_ms is None:
            yield (
                (*path, "experiment", "slo_ttft_ms"),
                "not set, so no request counts as in time or late",
            )
        yield from _arms(path, model)
        if not any(_allows(key, name) for key in settings.keys):
            yield path, "no key may use it"


def _arms(path: Path, model: Model) -> Iterator[tuple[Path, str]]:
    if len(model.arms) == 1:
        yield (*path, "arms"), "one arm, so there is nothing to compare it with"
    elif all(arm.role != "control" for arm in model.arms.values()):
        counts = f"{model.control} counts as it" if model.control else "nothing is compared with it"
        yield (*path, "arms"), f"no arm has the role control; {counts}"
    for name, arm in model.arms.items():
        if arm.weight == 0:
            yield (
                (*path, "arms", name, "weight"),
                "is 0, so only requests that ask for the arm by hand go there",
            )


def _backends(settings: Settings) -> Iterator[tuple[Path, str]]:
    served = {
        backend: (name, model)
        for name, model in settings.models.items()
        for arm in model.arms.values()
        for backend in arm.backends
    }
    for name, backend in settings.backends.items():
        path: Path = ("backends", name)
        engine = backend.engine
        if name not in served:
            yield path, "belongs to no arm, so it gets no request"
        elif engine is None or engine.max_num_batched_tokens is None:
            yield (
                (*path, "engine", "max_num_batched_tokens"),
                "not stated, so what the engine runs with cannot be verified",
            )
        if engine is not None:
            yield from _engine((*path, "engine"), engine, *served.get(name, (name, None)))


def _engine(
    path: Path, engine: EngineSettings, name: str, model: Model | None
) -> Iterator[tuple[Path, str]]:
    """What `gateway check --engine` would say; without a version, for the newest one known."""
    upstream_model = (model.upstream_model if model else None) or name
    config = engine.config(upstream_model, model.context_window if model else None)
    for one in check(config, complete=False):
        scope = "" if one.versions == EVERY_VERSION else f" ({one.versions})"
        yield (*path, one.field), f"{one.reason}{scope}; try {one.advice}"


def _keys(settings: Settings) -> Iterator[tuple[Path, str]]:
    for place, key in enumerate(settings.keys):
        path: Path = ("keys", place)
        limits = (key.requests_per_minute, key.tokens_per_minute, key.max_concurrency)
        if limits == (None, None, None):
            yield path, f"{key.name} has no limits, so it can take the place of every other key"
        for position, pattern in enumerate(key.models):
            if not any(fnmatchcase(model, pattern) for model in settings.models):
                yield (*path, "models", position), "matches no model"


def _sections(settings: Settings) -> Iterator[tuple[Path, str]]:
    if not _loopback(settings.server.host):
        yield (
            ("server", "host"),
            "other machines can reach it, and keys travel unencrypted: put TLS in front",
        )
    if settings.admin.key is None:
        yield ("admin", "key"), "not set, so the admin API and the commands that use it are off"
    if settings.metrics.key is None:
        yield ("metrics", "key"), "not set, so /metrics answers this machine only"


def _allows(key: KeySettings, model: str) -> bool:
    return any(fnmatchcase(model, pattern) for pattern in key.models)


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
