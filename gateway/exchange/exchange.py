"""One request's life after it was understood: a place, an attempt, perhaps another, an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from gateway.errors import BadRequest, GatewayError, NoBackend
from gateway.exchange.attempt import Attempt
from gateway.exchange.call import Call
from gateway.exchange.context import Context
from gateway.exchange.draft import Draft
from gateway.exchange.failure import AttemptFailed, Blame
from gateway.exchange.form import Form
from gateway.exchange.limits import TimeLimits
from gateway.exchange.outgoing import Outgoing
from gateway.exchange.pins import Pin
from gateway.records import Usage
from gateway.routing.backend import Backend

NOTHING_SERVES = "No server of this model is available right now; try again in a few seconds."
NO_SERVER_OF_ARM = (
    "No server of arm {arm} of model {model} is available; the model's other arms have some. Leave "
    "the arm out of the request, or try again in a few seconds."
)
NO_SERVER_OF_RESPONSE = (
    "The server that keeps this response is not available right now; try again in a few seconds."
)

# A request that three backends could not answer is more likely to be the cause than the victim.
MAX_ATTEMPTS = 3


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
        self._paused = False
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
            if self._expired is None:
                raise
        finally:
            self._limits.stop()
            self._task = None
        if self._expired is not None:
            raise self._expired

    def pause(self) -> None:
        """The client reads slower than it is written to."""
        self._paused = True
        self._limits.pause()
        if self._attempt is not None:
            self._attempt.pause()

    def resume(self) -> None:
        self._paused = False
        self._limits.resume()
        if self._attempt is not None:
            self._attempt.resume()

    async def _answer(self) -> None:
        failure: AttemptFailed | None = None
        while len(self._draft.tried) < MAX_ATTEMPTS:
            try:
                backend = self._gate.try_enter(self._pick) or await self._queue()
            except NoBackend as error:
                failure = failure or AttemptFailed(error, retryable=False, blame=Blame.NOBODY)
                break
            before = failure
            try:
                form = self._call.forms.of(backend)
                failure = await self._try(backend, form)
            except BadRequest as error:
                # It cannot be said as chat; one with the client's own API may be free.
                failure = failure or AttemptFailed(error, retryable=True, blame=Blame.REQUEST)
                self._draft.tried.append(backend.name)
                continue
            finally:
                self._leave(backend)
            if failure is None:
                return
            if self._outgoing.started:
                break
            if self._call.forms.change(backend, form, failure.error):
                failure = None  # it was the way of asking, whatever comes of the next
                continue
            if not failure.retryable:
                break
            failure = failure if before is None else failure.or_sooner(before)
            self._draft.tried.append(backend.name)
        assert failure is not None
        raise failure.error

    async def _queue(self) -> Backend:
        call = self._call
        lane = (call.api, call.arm.name, call.forced, call.pinned, tuple(self._draft.tried))
        return await self._gate.enter(self._pick, self._why_not, lane)

    def _leave(self, backend: Backend) -> None:
        """Give the place back; where a reload gave the backend to another model, who waits there
        is who wants it."""
        routes = self._context.table.routes
        self._context.gate_of(routes.get(backend.model, self._call.route)).leave(backend)

    def _candidates(self) -> Iterator[Backend]:
        """The backends that may still answer, best first."""
        call, tried = self._call, self._draft.tried
        if call.pinned is not None:
            usable = call.pinned.usable() and call.pinned.name not in tried
            return iter((call.pinned,) if usable else ())
        cross_arm = call.route.settings.cross_arm_failover and not call.forced
        return call.route.candidates(call.arm, call.session, tried, cross_arm=cross_arm)

    def _pick(self) -> Backend | None:
        forms = self._call.forms
        for backend in self._candidates():
            if forms.fits(backend) and backend.claim():
                return backend
        return None

    def _why_not(self) -> str | None:
        call = self._call
        if any(call.forms.fits(backend) for backend in self._candidates()):
            return None
        if not call.forced or not self._others_serve():
            return NOTHING_SERVES
        if call.pinned is not None:
            return NO_SERVER_OF_RESPONSE
        return NO_SERVER_OF_ARM.format(arm=call.arm.name, model=call.route.model)

    def _others_serve(self) -> bool:
        """Whether a request without the choice that bound this one would be served."""
        call = self._call
        arms = (arm for arm in call.route.arms.values() if arm.weight > 0)
        backends = (backend for arm in arms for backend in arm.backends)
        return any(backend.usable() and call.forms.fits(backend) for backend in backends)

    async def _try(self, backend: Backend, form: Form) -> AttemptFailed | None:
        draft = self._draft
        if draft.timeline.admitted is None:
            draft.timeline.admitted = self._context.clock()
        draft.arm, draft.backend = backend.arm, backend.name
        if self._call.key.expose_arm:
            self._outgoing.served_by(backend.arm, backend.name)
        clock = self._context.clock
        draft.backend_api = form.api
        attempt = Attempt(self._call, form, backend, self._outgoing, draft, clock, self._pin)
        if self._paused:
            attempt.pause()
        self._attempt = attempt
        self._limits.watch(attempt)
        try:
            await attempt.run(self._context.pool_of(backend))
        except AttemptFailed as failure:
            draft.detail.append(f"{backend.name}: {failure.error.detail or failure.error.message}")
            if failure.blame is Blame.REQUEST:
                backend.circuit.success()
            elif failure.blame is Blame.BACKEND and self._call.generates:
                backend.circuit.failure()
            return failure.bare()
        except asyncio.CancelledError:
            if self._expired is not None:
                draft.detail.append(f"{backend.name}: {self._expired.detail}")
                if self._call.generates and not self._outlasted():
                    backend.circuit.failure()  # it accepts requests and answers none
            raise
        else:
            backend.circuit.success()
            return None
        finally:
            draft.usage = self._used(attempt)
            self._attempt = None
            self._limits.watch(None)

    def _pin(self, response_id: str, backend: Backend) -> None:
        call = self._call
        name = call.rename[1].decode()
        pin = Pin(backend.name, backend.arm, call.route.model, name, call.key.id)
        self._context.pins.add(response_id, pin)

    def _used(self, attempt: Attempt) -> Usage | None:
        """What the backend stated; a stream that was cut is charged for what was relayed."""
        usage, stream = attempt.usage, attempt.stream
        if not self._call.generates:
            return None
        if stream is None or not stream.tokens:
            return usage
        if usage is not None and (stream.terminal or stream.finished):
            return usage
        # Messages begin with a usage that counts no output yet.
        usage = usage or Usage()
        completion = max(usage.completion, stream.tokens)
        return Usage(usage.prompt, usage.cached, completion, exact=False)

    def _outlasted(self) -> bool:
        """Whether a stream that went well was longer than a request may be."""
        timeline, total = self._draft.timeline, self._context.settings.timeouts.total
        spent = self._context.clock() - timeline.received
        return timeline.first_token is not None and spent >= total

    def _expire(self, error: GatewayError) -> None:
        self._expired = error
        assert self._task is not None
        self._task.cancel()

    def _abandon(self) -> None:
        """The client has stopped reading."""
        self.client_stalled = True
        assert self._task is not None
        self._task.cancel()
