"""One request's life after it was understood: a place, an attempt, perhaps another, an answer."""

from __future__ import annotations

import asyncio

from gateway.errors import GatewayError, NoBackend
from gateway.exchange.attempt import Attempt, AttemptFailed
from gateway.exchange.call import Call
from gateway.exchange.context import Context
from gateway.exchange.draft import Draft
from gateway.exchange.limits import TimeLimits
from gateway.exchange.outgoing import Outgoing
from gateway.exchange.pins import Pin
from gateway.records import Usage
from gateway.routing.backend import Backend

# A request that three backends could not answer is more likely to be the cause than the victim.
MAX_ATTEMPTS = 3
NOTHING_SERVES = "No server of model `{model}` is available right now; try again in a moment."


class Exchange:
    """Gets one call answered.

    `run` is cancelled when the client leaves; `expired` then tells whether it was cancelled by a
    time limit instead.
    """

    def __init__(self, context: Context, call: Call, outgoing: Outgoing, draft: Draft) -> None:
        self._context = context
        self._call = call
        self._outgoing = outgoing
        self._draft = draft
        self._gate = context.gate_of(call.route)
        self._attempt: Attempt | None = None
        self._task = asyncio.current_task()
        self._expired: GatewayError | None = None
        self.client_stalled = False
        self._limits = TimeLimits(
            context.settings.timeouts,
            context.settings.keepalive_interval,
            call.stream,
            draft.timeline,
            outgoing,
            context.clock,
            self._expire,
            self._abandon,
        )

    async def run(self) -> None:
        """Returns when the client has its whole answer.

        Raises:
            GatewayError: what to tell the client instead.
            asyncio.CancelledError: the client left, or the server is stopping.
        """
        try:
            await self._answer()
        except asyncio.CancelledError:
            if self._expired is not None:
                raise self._expired from None
            raise
        finally:
            self._limits.stop()

    def pause(self) -> None:
        """The client reads slower than it is written to."""
        self._limits.pause()
        if self._attempt is not None:
            self._attempt.pause()

    def resume(self) -> None:
        self._limits.resume()
        if self._attempt is not None:
            self._attempt.resume()

    async def _answer(self) -> None:
        failure: AttemptFailed | None = None
        for _ in range(MAX_ATTEMPTS):
            try:
                backend = self._gate.try_enter(self._pick)
                if backend is None:
                    backend = await self._gate.enter(self._pick, self._nothing_left)
            except NoBackend as error:
                raise (failure.error if failure else error) from None
            try:
                failure = await self._try(backend)
            finally:
                self._gate.leave(backend)
            if failure is None:
                return
            if not failure.retryable or self._outgoing.started:
                break
            self._draft.tried.append(backend.name)
        assert failure is not None
        raise failure.error

    def _pick(self) -> Backend | None:
        """A backend with a free place, claimed, or None."""
        call = self._call
        if call.pinned is not None:
            candidates = iter((call.pinned,) if call.pinned.name not in self._draft.tried else ())
        else:
            candidates = call.route.candidates(
                call.arm,
                call.session,
                self._draft.tried,
                cross_arm=not call.forced and call.route.settings.cross_arm_failover,
            )
        for backend in candidates:
            if backend.outstanding < backend.max_concurrency and backend.claim():
                return backend
        return None

    def _nothing_left(self) -> bool:
        call = self._call
        if call.pinned is not None:
            return call.pinned.name in self._draft.tried or not call.pinned.usable()
        cross_arm = not call.forced and call.route.settings.cross_arm_failover
        candidates = call.route.candidates(
            call.arm, call.session, self._draft.tried, cross_arm=cross_arm
        )
        return next(candidates, None) is None

    async def _try(self, backend: Backend) -> AttemptFailed | None:
        draft = self._draft
        if draft.timeline.admitted is None:
            draft.timeline.admitted = self._context.clock()
        draft.arm, draft.backend = backend.arm, backend.name
        if self._call.key.expose_arm and not self._outgoing.started:
            self._expose(backend)
        attempt = Attempt(self._call, backend, self._outgoing, draft, self._context.clock)
        self._attempt = attempt
        self._limits.watch(attempt)
        try:
            await attempt.run(self._context.pool_of(backend))
        except AttemptFailed as failure:
            draft.detail.append(f"{backend.name}: {failure.error.detail or failure.error.message}")
            if failure.blame:
                backend.circuit.failure()
            else:
                backend.circuit.success()
            return failure
        else:
            backend.circuit.success()
            self._pin(attempt, backend)
            return None
        finally:
            draft.usage = attempt.usage or self._relayed(attempt)
            self._attempt = None
            self._limits.watch(None)

    def _expose(self, backend: Backend) -> None:
        names = (b"x-gateway-arm", b"x-gateway-backend")
        kept = [header for header in self._outgoing.headers if header[0] not in names]
        values = (backend.arm.encode(), backend.name.encode())
        self._outgoing.headers = kept + list(zip(names, values, strict=True))

    def _pin(self, attempt: Attempt, backend: Backend) -> None:
        if attempt.response_id:
            pin = Pin(backend.name, backend.arm, self._call.route.model, self._call.key.id)
            self._context.pins.add(attempt.response_id, pin)

    def _relayed(self, attempt: Attempt) -> Usage | None:
        """A stream that was cut before its usage came is charged for what was relayed."""
        if attempt.stream is None or not attempt.stream.tokens:
            return None
        return Usage(completion=attempt.stream.tokens, exact=False)

    def _expire(self, error: GatewayError) -> None:
        self._expired = error
        assert self._task is not None
        self._task.cancel()

    def _abandon(self) -> None:
        """The client has stopped reading."""
        self.client_stalled = True
        assert self._task is not None
        self._task.cancel()
