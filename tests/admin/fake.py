"""A gateway without sockets, for the admin API and the command line to talk to."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response

from gateway.admin.api import router
from gateway.errors import BadRequest, ConfigError, Conflict, GatewayError
from gateway.keys.keyring import Key, KeyRing
from gateway.keys.limits import Limiter, Standing
from gateway.protocols import faults
from gateway.records import Api, Outcome, Record, Timeline, Usage
from gateway.routing.table import Table
from gateway.settings import Settings
from gateway.state.store import WeightChange
from gateway.telemetry.by_key import KeyUse

ADMIN_KEY = "sk-admin-0123456789abcdefghij"
READ_KEY = "sk-read-0123456789abcdefghijk"
CLIENT_KEY = "sk-test-0123456789abcdefghijkl"

CONFIGURATION: dict[str, Any] = {
    "models": {
        "llama": {
            "aliases": ["gpt-4o-local", "claude-*"],
            "upstream_model": "meta-llama/Llama-3-70B",
            "experiment": {"slo_ttft_ms": 500},
            "arms": {
                "chunk-512": {"weight": 90, "backends": ["vllm-a"]},
                "chunk-64": {"weight": 10, "role": "canary", "backends": ["vllm-b"]},
            },
        },
        "org/small": {"arms": {"only": {"weight": 1, "backends": ["vllm-c"]}}},
    },
    "backends": {
        "vllm-a": {"url": "http://10.0.0.1:8001", "engine": {"max_num_batched_tokens": 512}},
        "vllm-b": {"url": "http://10.0.0.2:8001", "api_key": "sk-backend-secret"},
        "vllm-c": {"url": "http://10.0.0.3:8001"},
    },
    "keys": [{"name": "dev", "key": CLIENT_KEY, "requests_per_minute": 600, "arms": ["chunk-64"]}],
    "admin": {"key": ADMIN_KEY, "read_key": READ_KEY},
}


def settings(**changes: Any) -> Settings:
    return Settings.model_validate({**CONFIGURATION, **changes})


class FakeControl:
    """Keeps weights and switches in memory; `next_settings` is what a reload finds."""

    def __init__(self, initial: Settings) -> None:
        self.settings = initial
        self.next_settings: Settings | ConfigError = initial
        self.table = Table(initial, lambda: 0.0)
        self.limiter = Limiter(lambda: 0.0)
        self.used: dict[str, KeyUse] = {}
        self.records: dict[str, Record] = {}
        self.changes: list[WeightChange] = []
        self.switched: list[tuple[str, bool, str]] = []

    def find(self, request_id: str) -> Record | None:
        return self.records.get(request_id)

    def standings(self) -> Sequence[tuple[Key, Standing, KeyUse]]:
        return [
            (key, self.limiter.standing(key), self.used.get(key.name, KeyUse()))
            for key in KeyRing(self.settings.keys).keys
        ]

    async def set_weights(
        self,
        model: str,
        weights: Mapping[str, float],
        *,
        revision: int | None,
        reason: str,
        by: str,
    ) -> None:
        route = self.table.routes[model]
        if revision is not None and revision != route.revision:
            raise Conflict(f"The weights are at revision {route.revision}, not {revision}.")
        unknown = weights.keys() - route.arms.keys()
        if unknown:
            raise BadRequest(f"There is no arm `{unknown.pop()}`.", param="weights")
        before, after = route.weights, {**route.weights, **weights}
        route.set_weights(after, route.revision + 1)
        change = WeightChange(model, route.revision, 1_700_000_000.0, by, reason, before, after)
        self.changes.insert(0, change)

    async def set_enabled(self, backend: str, enabled: bool, *, by: str) -> None:
        self.table.backends[backend].enabled = enabled
        self.switched.append((backend, enabled, by))

    async def history(self, model: str | None, limit: int) -> Sequence[WeightChange]:
        found = (change for change in self.changes if model in (None, change.model))
        return list(itertools.islice(found, limit))

    async def reload(self) -> Settings:
        if isinstance(self.next_settings, ConfigError):
            raise self.next_settings
        self.settings = self.next_settings
        return self.settings


def application(control: FakeControl) -> FastAPI:
    app = FastAPI(openapi_url=None)
    app.include_router(router(control))

    @app.exception_handler(GatewayError)
    async def answer(request: Request, error: GatewayError) -> Response:
        return Response(faults.body(Api.OTHER, error, "req-admin"), error.status)

    return app


def record(**changes: Any) -> Record:
    """A streamed request to vllm-a: 20 ms in the queue, 5 in the gateway, 300 in the engine."""
    facts: dict[str, Any] = {
        "id": "req_1",
        "at": 1_700_000_000.0,
        "timeline": Timeline(
            received=50.0,
            body_complete=50.010,
            admitted=50.030,
            sent=50.035,
            upstream_headers=50.070,
            first_byte=50.075,
            first_token=50.335,
            last_token=50.385,
            done=50.400,
        ),
        "api": Api.CHAT,
        "path": "/v1/chat/completions",
        "status": 200,
        "outcome": Outcome.OK,
        "stream": True,
        "key": "dev",
        "model": "llama",
        "requested_model": "gpt-4o-local",
        "session": "9f3c2a",
        "session_source": "x-session-id",
        "assigned_arm": "chunk-512",
        "arm": "chunk-512",
        "backend": "vllm-a",
        "usage": Usage(prompt=1600, cached=1024, completion=40),
        "weights": {"chunk-512": 90.0, "chunk-64": 10.0},
        "revision": 3,
    }
    return Record(**{**facts, **changes})
