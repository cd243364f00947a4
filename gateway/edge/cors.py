"""Which web pages may call the gateway, by the origins in force now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.middleware.cors import CORSMiddleware

from gateway.exchange.context import Context

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


def allowed(context: Context, origin: str) -> bool:
    """Whether pages of this origin may read what the gateway answers."""
    origins = context.settings.server.cors_origins
    return "*" in origins or origin in origins


class Cors(CORSMiddleware):
    """Answers preflights of every route, and marks the answers of those that are not hot."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        super().__init__(app, allow_methods=["*"], allow_headers=["*"], expose_headers=["*"])
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._context.settings.server.cors_origins:
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def is_allowed_origin(self, origin: str) -> bool:
        return allowed(self._context, origin)
