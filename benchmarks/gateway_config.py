"""The gateway's configuration under test: every feature of the data plane on.

Two models: `tiny`, which the stub knows by that name, and `renamed`, whose name is replaced in
every request and reply. Each has two arms with a backend each, on the two stubs. Clients are held
to request, token and concurrency limits that they never reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from benchmarks.site import Site
from benchmarks.workloads import MODEL

RENAMED_MODEL = "renamed"
NO_LIMIT = 1_000_000_000
WIDE_MODELS = 20


def write(site: Site) -> Path:
    """Write `gateway.yaml` with both models and return its path."""
    return _dump(site, settings(site, {MODEL: MODEL, RENAMED_MODEL: MODEL}))


def write_wide(site: Site) -> Path:
    """Write `gateway.yaml` with many models, so that `/metrics` holds many series."""
    return _dump(site, settings(site, dict.fromkeys(wide_models(), MODEL)))


def wide_models() -> list[str]:
    """The models' names of `write_wide`."""
    return [f"{MODEL}-{number}" for number in range(WIDE_MODELS)]


def settings(site: Site, models: dict[str, str]) -> dict[str, Any]:
    """The configuration as data; `models` maps clients' names to the upstream's."""
    first, second = site.upstreams
    arms = {"chunk-512": first, "chunk-2048": second}
    return {
        "server": {"port": site.port, "drain_delay": 0, "drain_timeout": 1},
        "models": {
            name: {
                "upstream_model": upstream,
                "experiment": {"name": "bench", "unit": "session", "slo_ttft_ms": 500},
                "arms": {arm: {"weight": 50, "backends": [f"{name}-{arm}"]} for arm in arms},
            }
            for name, upstream in models.items()
        },
        "backends": _backends(models, arms),
        "keys": [
            {
                "name": "bench",
                "key": site.key,
                "requests_per_minute": NO_LIMIT,
                "tokens_per_minute": NO_LIMIT,
                "max_concurrency": NO_LIMIT,
            }
        ],
        "database_url": f"sqlite:///{site.folder / 'gateway.db'}",
    }


def _backends(models: Iterable[str], arms: dict[str, int]) -> dict[str, Any]:
    return {
        f"{model}-{arm}": {
            "url": f"http://127.0.0.1:{port}",
            "engine": {"max_num_batched_tokens": int(arm.removeprefix("chunk-"))},
            "max_concurrency": 8192,
        }
        for model in models
        for arm, port in arms.items()
    }


def _dump(site: Site, content: dict[str, Any]) -> Path:
    path = site.folder / "gateway.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    path.chmod(0o600)
    return path
