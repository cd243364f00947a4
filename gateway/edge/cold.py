"""The routes that are not hot: models, health, readiness, metrics, and what to say elsewhere.

Paths are canonical here (`/models`, not `/v1/models`): the front door has already understood
whichever base URL the client was given. `raw_path` is what the client sent.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from gateway import __version__
from gateway.edge.intake import known_models
from gateway.edge.paths import ENDPOINTS, canonical
from gateway.errors import Forbidden, GatewayError, MethodNotAllowed, NotFound, Unauthorized
from gateway.exchange.context import Context
from gateway.keys.keyring import Key
from gateway.protocols import faults
from gateway.records import Api
from gateway.routing.table import Route

_POST_ONLY = {canonical(endpoint.path.decode()) for endpoint in ENDPOINTS}


def add_routes(
    app: FastAPI, context: Context, render_metrics: Callable[[], AsyncIterator[bytes]]
) -> None:
    """Mount the cold routes.

    Args:
        render_metrics: the Prometheus text page, slice by slice.
    """

    @app.get("/models")
    async def list_models(request: Request) -> dict[str, Any]:
        names = known_models(context, _authenticate(context, request))
        if "anthropic-version" in request.headers:
            data = [_anthropic_model(name) for name in names]
            first, last = (names[0], names[-1]) if names else (None, None)
            return {"data": data, "has_more": False, "first_id": first, "last_id": last}
        windows = [context.table.named[name].context_window for name in names]
        return {"object": "list", "data": list(map(_model, names, windows))}

    @app.get("/models/{name:path}")
    async def one_model(request: Request, name: str) -> dict[str, Any]:
        key = _authenticate(context, request)
        route = _route(context, key, name)
        if route is None:
            offer = ", ".join(f"`{known}`" for known in known_models(context, key)) or "none"
            raise NotFound(
                f"There is no model `{name[:200]}` for this key. Models for this key: {offer}.",
                param="model",
                code="model_not_found",
            )
        if "anthropic-version" in request.headers:
            return _anthropic_model(name)
        return _model(name, route.context_window)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @app.get("/ready")
    async def ready() -> JSONResponse:
        status = "draining" if context.draining else "ready"
        models = {name: _arms(context, name) for name in context.table.routes}
        body = {"status": status, "models": models}
        return JSONResponse(body, status_code=503 if context.draining else 200)

    @app.get("/metrics")
    async def metrics(request: Request) -> Response:
        _may_scrape(context, request)
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return StreamingResponse(render_metrics(), media_type=kind)

    @app.api_route("/", methods=["GET", "HEAD"])
    async def root(request: Request) -> dict[str, str]:
        return {
            "service": "TTFT Gateway",
            "version": __version__,
            "openai_base_url": f"{request.base_url}v1",
            "anthropic_base_url": str(request.base_url).rstrip("/"),
            "models": f"{request.base_url}v1/models",
        }

    @app.exception_handler(GatewayError)
    async def gateway_error(request: Request, error: GatewayError) -> Response:
        return _answer(context, request, error)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        return _answer(
            context, request, GatewayError("The gateway failed; its log has the reason.")
        )

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        answer = _answer(context, request, _no_route(request, error.status_code))
        answer.headers.update(error.headers or {})
        if request.url.path in _POST_ONLY:
            answer.headers["allow"] = "POST"
        return answer


def _authenticate(context: Context, request: Request) -> Key:
    return context.keyring.authenticate(request.headers.raw)


def _route(context: Context, key: Key, name: str) -> Route | None:
    """The route a request for this model would take; None where it would be refused."""
    try:
        route, arm = context.table.resolve(name)
    except KeyError:
        return None
    chosen = arm is None or (arm in route.arms and key.allows_arm(arm))
    return route if chosen and key.allows_model(route.model) else None


def _model(name: str, window: int | None) -> dict[str, Any]:
    model = {"id": name, "object": "model", "created": 0, "owned_by": "ttft-gateway"}
    return model | ({"context_window": window, "max_model_len": window} if window else {})


def _anthropic_model(name: str) -> dict[str, Any]:
    created = datetime.fromtimestamp(0, UTC).isoformat().replace("+00:00", "Z")
    return {"type": "model", "id": name, "display_name": name, "created_at": created}


def _arms(context: Context, model: str) -> dict[str, Any]:
    arms = context.table.routes[model].arms
    return {
        "arms": {
            name: {
                "backends": len(arm.backends),
                "usable": sum(backend.usable() for backend in arm.backends),
                "serving": sum(backend.serves() for backend in arm.backends),
            }
            for name, arm in arms.items()
        }
    }


def _may_scrape(context: Context, request: Request) -> None:
    key = context.settings.metrics.key
    if key is None:
        host = request.client.host if request.client else ""
        try:
            local = ipaddress.ip_address(host).is_loopback
        except ValueError:
            local = False
        if not local:
            raise Forbidden("Without metrics.key in the configuration, only loopback may scrape.")
        return
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    sent = token.strip() if scheme.lower() == "bearer" else ""
    if not hmac.compare_digest(sent.encode(), key.get_secret_value().encode()):
        raise Unauthorized("Send metrics.key as Authorization: Bearer <key>.")


def _no_route(request: Request, status: int) -> GatewayError:
    path = request.scope["raw_path"][:200].decode("latin-1")
    method = request.method
    base = str(request.base_url).rstrip("/")
    if request.url.path in _POST_ONLY:
        return MethodNotAllowed(f"{method} is not allowed on {path}; use POST.")
    if status == 405:
        return MethodNotAllowed(f"{method} is not allowed on {path}.")
    return NotFound(
        f"There is no {method} {path} here. Base URL for OpenAI SDKs and Codex: {base}/v1; "
        f"for Claude Code and the Anthropic SDKs: {base}; model ids: GET {base}/v1/models.",
        code="route_not_found",
    )


def _answer(context: Context, request: Request, error: GatewayError) -> Response:
    anthropic = "anthropic-version" in request.headers or "/messages" in request.url.path
    request_id = context.new_id()
    body = faults.body(Api.MESSAGES if anthropic else Api.OTHER, error, request_id)
    headers = {"x-request-id": request_id}
    return Response(body, error.status, headers, media_type="application/json")
