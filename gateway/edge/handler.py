"""One hot request from its head to its record, whichever server carries it.

A handler is told when the head, the body and the departure of the client arrive; it answers
through a `Reply`. It owns the only task of the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from gateway.edge.cors import allowed
from gateway.edge.intake import Understand, understand
from gateway.edge.paths import Endpoint
from gateway.errors import GatewayError, Overloaded, TooLarge
from gateway.exchange.call import Call
from gateway.exchange.context import Context
from gateway.exchange.draft import Draft
from gateway.exchange.exchange import Exchange
from gateway.exchange.outgoing import Outgoing
from gateway.exchange.reply import Reply
from gateway.keys.keyring import Key
from gateway.keys.limits import Grant, LimitReached
from gateway.records import Api, Outcome, Timeline

log = logging.getLogger("gateway")

STOPPING = "The gateway is restarting; send the request again."
BROKEN = "The gateway failed to handle this request; its log has the reason under {id}."
BODY_TOO_SLOW = "The request body did not arrive within {seconds:g} s."
TOO_LARGE = "The request body is larger than the {limit} MiB this gateway accepts."


class Handler:
    """Serves one request to `endpoint`.

    Attributes:
        done: the answer is complete and recorded; nothing more will be written.
    """

    def __init__(
        self,
        context: Context,
        endpoint: Endpoint,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        reply: Reply,
        understand: Understand = understand,
    ) -> None:
        self._context = context
        self._understand = understand
        self._endpoint = endpoint
        self._headers = headers
        self._fields = dict(headers)
        self._key: Key | None = None
        self._exchange: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._gone = False
        self._running = False  # a task that is cancelled before its first step never takes it
        self.done = False
        request_id = context.new_id()
        self._draft = Draft(
            id=request_id,
            at=context.wall_clock(),
            api=endpoint.api,
            path=target.partition(b"?")[0][:200].decode("latin-1"),
            timeline=Timeline(context.clock()),
        )
        if context.trace is not None:
            self._draft.trace, self._headers = context.trace(headers)
        self._outgoing = Outgoing(
            reply,
            endpoint.dialect,
            request_id,
            context.clock,
            headers,
            _ids(endpoint.dialect, request_id.encode()),
        )

        if context.settings.server.cors_origins:
            self._outgoing.headers += self._cors()

    def open(self) -> bool:
        """Look at the head alone. False: the request was refused and answered."""
        context = self._context
        try:
            self._key = context.keyring.authenticate(self._headers)
            self._draft.key = self._key.name
            limit = context.settings.server.max_body_mib
            length = self._fields.get(b"content-length", b"")
            if length.isdigit() and int(length) > limit * 2**20:
                raise TooLarge(TOO_LARGE.format(limit=limit))
        except GatewayError as error:
            self.refuse(error)
            return False
        return True

    def start(self, body: bytes) -> asyncio.Task[None]:
        """The body is complete: answer."""
        self._draft.timeline.body_complete = self._context.clock()
        self._task = asyncio.get_running_loop().create_task(self._serve(body))
        return self._task

    def refuse(self, error: GatewayError) -> None:
        """Answer with an error before the body is complete."""
        if not self.done:
            self._fail(error)
            self._finish(error.outcome)

    def client_gone(self) -> None:
        """The client has closed its connection."""
        self._gone = True
        if self._task is not None:
            self._task.cancel()
        if not self._running and not self.done:
            self._outgoing.abandon()
            self._finish(Outcome.CLIENT_GONE)

    def pause(self) -> None:
        """The client reads slower than it is written to."""
        if self._exchange is not None:
            self._exchange.pause()

    def resume(self) -> None:
        if self._exchange is not None:
            self._exchange.resume()

    async def _serve(self, body: bytes) -> None:
        assert self._key is not None
        self._running = True
        outcome = Outcome.OK
        grant: Grant | None = None
        try:
            call = self._understand(
                self._context, self._endpoint, self._key, self._headers, body, self._draft
            )
            self._outgoing.stream = call.stream
            grant = self._admit(self._key)
            await self._answer(call)
        except GatewayError as error:
            outcome = error.outcome
            error.__traceback__ = None  # it ends here, and its frames hold what holds it
            self._fail(error)
        except asyncio.CancelledError:
            outcome = self._cancelled()
        except Exception:
            # The last line of defence: whatever broke, the client gets an answer in its own shape.
            log.exception("request %s failed", self._draft.id)
            outcome = Outcome.GATEWAY_ERROR
            self._fail(GatewayError(BROKEN.format(id=self._draft.id)))
        finally:
            if grant is not None:
                usage = self._draft.usage
                if usage is not None:
                    grant.charge(usage.prompt + usage.completion)
                grant.release()
            self._finish(outcome)

    def _admit(self, key: Key) -> Grant:
        try:
            grant = self._context.limiter.admit(key)
        except LimitReached as error:
            self._outgoing.headers += error.headers
            raise
        self._outgoing.headers += grant.headers
        return grant

    async def _answer(self, call: Call) -> None:
        self._outgoing.model = self._draft.requested_model
        self._exchange = Exchange(self._context, call, self._outgoing, self._draft)
        await self._exchange.run()

    def _cancelled(self) -> Outcome:
        stalled = self._exchange is not None and self._exchange.client_stalled
        if self._gone or stalled:
            self._outgoing.abandon()
            return Outcome.CLIENT_GONE
        self._fail(Overloaded(STOPPING, retry_after=1))
        return Outcome.GATEWAY_ERROR

    def _fail(self, error: GatewayError) -> None:
        self._draft.error = error.message
        self._draft.refusal = error.refusal
        if error.detail and not self._draft.detail:
            self._draft.detail.append(error.detail)
        self._outgoing.fail(error)

    def _finish(self, outcome: Outcome) -> None:
        self.done = True
        # The exchange and the reply refer to this handler: without the cut only the collector
        # could free a request, and its pauses would be in every other request's TTFT.
        self._exchange = self._task = None
        self._draft.timeline.done = self._context.clock()
        outgoing = self._outgoing
        self._context.record(self._draft.record(outgoing.status, outcome, outgoing.bytes_out))

    def _cors(self) -> list[tuple[bytes, bytes]]:
        origin = self._fields.get(b"origin")
        if not origin or not allowed(self._context, origin.decode("latin-1")):
            return []
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", b"*"),
            (b"vary", b"origin"),
        ]


def _ids(dialect: Api, request_id: bytes) -> list[tuple[bytes, bytes]]:
    """The request's id, under the name by which the client's SDK looks for it."""
    if dialect is Api.MESSAGES:
        return [(b"x-request-id", request_id), (b"request-id", request_id)]
    return [(b"x-request-id", request_id)]
