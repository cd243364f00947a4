"""The routes under `/admin/v1`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.openapi.utils import get_openapi

from gateway import __version__
from gateway.admin.access import guarded
from gateway.admin.backend_view import BackendView
from gateway.admin.changes import changes
from gateway.admin.control import Control
from gateway.admin.views import (
    BackendBody,
    ChangeView,
    KeyView,
    ModelView,
    ReloadView,
    RequestView,
    WeightsBody,
)
from gateway.errors import BadRequest, ConfigError, NotFound
from gateway.routing.backend import Backend
from gateway.routing.table import Route

Actor = Annotated[
    str, Header(alias="x-gateway-actor", max_length=100, description="Who asks, for the history.")
]


def router(control: Control) -> APIRouter:
    """All admin routes; they raise `GatewayError`, which the application words."""
    routes = APIRouter(prefix="/admin/v1", route_class=guarded(control))
    _add_reading(routes, control)
    _add_writing(routes, control)

    @routes.get("/openapi.json", include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        return get_openapi(
            title="TTFT Gateway admin API", version=__version__, routes=routes.routes
        )

    return routes


def _add_reading(routes: APIRouter, control: Control) -> None:
    @routes.get("/models")
    async def list_models() -> list[ModelView]:
        """Every model: arms, weights, revision, shares, health."""
        return [ModelView.of(route) for route in control.table.routes.values()]

    @routes.get("/models/{model:path}")
    async def one_model(model: str) -> ModelView:
        return ModelView.of(_route(control, model))

    @routes.get("/backends")
    async def list_backends() -> list[BackendView]:
        """Every backend: health, load, and the engine facts declared for it."""
        return [BackendView.of(backend) for backend in control.table.backends.values()]

    @routes.get("/requests/{request_id}")
    async def one_request(request_id: str) -> RequestView:
        """Why a request went where it did: its record, without its content."""
        record = control.find(request_id)
        if record is None:
            raise NotFound(
                f"No request `{request_id[:100]}` is remembered: it is still under way, older "
                "than the last 10,000, from before a restart (the access log has it then), or was "
                "not to a model: a list of models, a wrong path or method. "
                "Its id stands in the reply's x-request-id header.",
                code="request_not_found",
            )
        return RequestView.of(record)

    @routes.get("/keys")
    async def list_keys() -> list[KeyView]:
        """Names, limits and use; never a key."""
        return [KeyView.of(*one) for one in control.standings()]

    @routes.get("/history")
    async def history(
        model: str | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
    ) -> list[ChangeView]:
        """Changes of weights, the latest first."""
        name = _route(control, model).model if model is not None else None
        return [ChangeView.model_validate(change) for change in await control.history(name, limit)]


def _add_writing(routes: APIRouter, control: Control) -> None:
    @routes.put("/models/{model:path}/weights")
    async def set_weights(model: str, body: WeightsBody, actor: Actor = "api") -> ModelView:
        """Put weights in force; 409 where `revision` is no longer the one in force."""
        route = _route(control, model)
        await control.set_weights(
            route.model, body.weights, revision=body.revision, reason=body.reason, by=actor
        )
        return ModelView.of(_route(control, route.model))

    @routes.put("/backends/{name}")
    async def set_backend(name: str, body: BackendBody, actor: Actor = "api") -> BackendView:
        """Take a backend out, or put it back. What runs on it finishes."""
        backend = _backend(control, name)
        await control.set_enabled(backend.name, body.enabled, by=actor)
        return BackendView.of(_backend(control, name))

    @routes.post("/reload")
    async def reload() -> ReloadView:
        """Read the configuration anew, as SIGHUP does."""
        before = control.settings
        try:
            after = await control.reload()
        except ConfigError as error:
            faults = "\n".join(f"  {fault}" for fault in error.faults)
            raise BadRequest(
                f"The configuration has faults, so the one in force stays:\n{faults}",
                code="invalid_configuration",
            ) from None
        return ReloadView(changed=changes(before, after))


def _route(control: Control, model: str) -> Route:
    """The model of that id or alias."""
    try:
        route, arm = control.table.resolve(model)
    except KeyError:
        pass
    else:
        if arm is None:
            return route
    known = ", ".join(f"`{name}`" for name in control.table.routes) or "none"
    raise NotFound(f"There is no model `{model[:200]}`. Models: {known}.", code="model_not_found")


def _backend(control: Control, name: str) -> Backend:
    backend = control.table.backends.get(name)
    if backend is None:
        known = ", ".join(f"`{name}`" for name in control.table.backends) or "none"
        raise NotFound(
            f"There is no backend `{name[:100]}`. Backends: {known}.", code="backend_not_found"
        )
    return backend
