"""How the console reaches its gateway: over HTTP alone, with the key of whoever asks."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from gateway.admin.backend_view import BackendView
from gateway.admin.views import ChangeView, KeyView, ModelView
from gateway.console.sessions import Role, Session
from gateway.errors import Forbidden, GatewayError, Unauthorized

NO_ANSWER = (
    "No gateway answers at {url}. Start it with gateway serve, or give its address by --url."
)
NOT_OURS = "What answers at {url} is no TTFT Gateway (HTTP {status}). Give its address by --url."
READ_ONLY = "You are signed in with admin.read_key, which may only read."


class Remote:
    """A gateway. All methods raise GatewayError with a sentence for the page.

    Args:
        client: with the gateway's address as its base URL.
        metrics_key: metrics.key of the gateway, where it has one.

    Attributes:
        url: the gateway's address.
        client: for what streams.
    """

    def __init__(self, client: httpx.AsyncClient, metrics_key: str = "") -> None:
        self.client = client
        self.url = str(client.base_url).rstrip("/")
        self._metrics_key = metrics_key

    async def role(self, key: str) -> Role | None:
        """What an admin key lets its holder do, as the gateway judges it; None: it is none.

        A change that names nothing to change is refused for its key before it is looked at, so
        the refusal tells the key's role and nothing is changed.
        """
        if not key or not (key.isascii() and key.isprintable()):
            return None
        try:
            await self._ask("PUT", ("backends", "-"), key, body={})
        except Unauthorized:
            return None
        except Forbidden as error:
            if error.code == "read_only_key":
                return Role.READ
            raise
        except GatewayError as error:
            if error.param != "enabled":
                raise
        return Role.ADMIN

    async def models(self, session: Session) -> list[ModelView]:
        answer = await self._ask("GET", ("models",), session.key)
        return [ModelView.model_validate(one) for one in answer]

    async def keys(self, session: Session) -> list[KeyView]:
        answer = await self._ask("GET", ("keys",), session.key)
        return [KeyView.model_validate(one) for one in answer]

    async def history(self, session: Session, model: str, limit: int) -> list[ChangeView]:
        query = {"model": model, "limit": str(limit)}
        answer = await self._ask("GET", ("history",), session.key, query=query)
        return [ChangeView.model_validate(one) for one in answer]

    async def set_weights(
        self, session: Session, model: ModelView, weights: dict[str, float], reason: str
    ) -> ModelView:
        """Refused where the model's revision is no longer the one in force."""
        body = {"weights": weights, "revision": model.revision, "reason": reason}
        return ModelView.model_validate(
            await self._change(session, ("models", model.name, "weights"), body)
        )

    async def set_enabled(self, session: Session, backend: str, enabled: bool) -> BackendView:
        return BackendView.model_validate(
            await self._change(session, ("backends", backend), {"enabled": enabled})
        )

    async def metrics(self) -> str:
        """The page in Prometheus' text format."""
        headers = {"authorization": f"Bearer {self._metrics_key}"} if self._metrics_key else {}
        reply = await self._send("GET", "/metrics", headers=headers)
        if not reply.is_success:
            raise self._refused(reply)
        return reply.text

    async def _change(self, session: Session, path: tuple[str, ...], body: dict[str, Any]) -> Any:
        if session.role is not Role.ADMIN:
            raise Forbidden(READ_ONLY)
        return await self._ask("PUT", path, session.key, body=body, actor=session.actor)

    async def _ask(
        self,
        method: str,
        path: tuple[str, ...],
        key: str,
        *,
        query: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
        actor: str = "console",
    ) -> Any:
        target = "/".join(("/admin/v1", *(quote(part, safe="") for part in path)))
        headers = {"authorization": f"Bearer {key}", "x-gateway-actor": actor}
        reply = await self._send(method, target, headers=headers, params=query, json=body)
        if not reply.is_success:
            raise self._refused(reply)
        try:
            return reply.json()
        except ValueError:
            raise self._foreign(reply) from None

    async def _send(self, method: str, target: str, **options: Any) -> httpx.Response:
        try:
            return await self.client.request(method, target, **options)
        except httpx.TimeoutException:
            raise GatewayError(f"{self.url} did not answer in time.") from None
        except httpx.HTTPError:
            raise GatewayError(NO_ANSWER.format(url=self.url)) from None

    def _refused(self, reply: httpx.Response) -> GatewayError:
        try:
            error = reply.json()["error"]
            message, code, param = str(error["message"]), error.get("code"), error.get("param")
        except (ValueError, KeyError, TypeError, AttributeError):
            return self._foreign(reply)
        kinds = {401: Unauthorized, 403: Forbidden}
        return kinds.get(reply.status_code, GatewayError)(message, code=code, param=param)

    def _foreign(self, reply: httpx.Response) -> GatewayError:
        return GatewayError(NOT_OURS.format(url=self.url, status=reply.status_code))
