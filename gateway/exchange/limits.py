"""The time limits of one exchange, and its keep-alives, on one timer.

A timer for each limit, re-armed at every read, would cost more than the relay. One timer looks
at what has happened since, acts on what is due and sleeps until the next thing can be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway.errors import BackendTimeout, GatewayError
from gateway.exchange.attempt import Attempt
from gateway.exchange.outgoing import Outgoing
from gateway.records import Timeline
from gateway.settings import Timeouts

TOO_LONG = "The answer took longer than the {limit:g} s this gateway allows for {what}."


class TimeLimits:
    """Watches one exchange until `stop`.

    Args:
        expire: called with the error when a limit has passed.
        abandon: called when the client has stopped reading for longer than the idle limit.
    """

    def __init__(
        self,
        timeouts: Timeouts,
        keepalive_interval: float,
        stream: bool,
        timeline: Timeline,
        outgoing: Outgoing,
        clock: Callable[[], float],
        expire: Callable[[GatewayError], None],
        abandon: Callable[[], None],
    ) -> None:
        self._timeouts = timeouts
        self._keepalive = keepalive_interval
        self._stream = stream
        self._timeline = timeline
        self._outgoing = outgoing
        self._clock = clock
        self._expire = expire
        self._abandon = abandon
        self._attempt: Attempt | None = None
        self._paused_since: float | None = None
        if stream:
            self._longest_sleep = min(
                timeouts.total, timeouts.idle, timeouts.first_token, keepalive_interval
            )
        else:
            self._longest_sleep = min(timeouts.total, timeouts.idle)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self._longest_sleep, self._wake)

    def watch(self, attempt: Attempt | None) -> None:
        """The attempt under way now."""
        self._attempt = attempt

    def pause(self) -> None:
        self._paused_since = self._clock()

    def resume(self) -> None:
        self._paused_since = None

    def stop(self) -> None:
        self._timer.cancel()
        self._attempt = None
        # They are methods of the exchange, which holds this: see HotCycle._end.
        self._expire = self._abandon = _nothing

    def _wake(self) -> None:
        now = self._clock()
        if self._paused_since is not None and now - self._paused_since >= self._timeouts.idle:
            self._abandon()
            return
        expired = self._expired(now)
        if expired is not None:
            self._expire(expired)
            return
        sleep = self._longest_sleep
        if self._stream and self._paused_since is None:
            quiet = now - max(self._outgoing.last_sign, self._timeline.received)
            if quiet >= self._keepalive:
                self._outgoing.keep_alive()
                quiet = 0.0
            sleep = min(sleep, self._keepalive - quiet)
        sleep = min([sleep, *(due - now for due in self._due())])
        # Timers may fire a moment early; a floor keeps that from becoming a busy loop.
        self._timer = self._loop.call_later(max(sleep, 0.001), self._wake)

    def _due(self) -> list[float]:
        """When each limit that runs now would pass."""
        due = [self._timeline.received + self._timeouts.total]
        attempt = self._attempt
        sent = self._timeline.sent
        if attempt is not None and sent is not None and self._stream:
            if self._timeline.first_token is None:
                due.append(sent + self._timeouts.first_token)
            elif self._paused_since is None:
                due.append(attempt.last_read + self._timeouts.idle)
        return due

    def _expired(self, now: float) -> GatewayError | None:
        passed = [due for due in self._due() if due <= now]
        if not passed:
            return None
        if self._timeline.received + self._timeouts.total <= now:
            limit, what = self._timeouts.total, "a whole request"
        elif self._timeline.first_token is None:
            limit, what = self._timeouts.first_token, "the first token"
        else:
            limit, what = self._timeouts.idle, "the time between two tokens"
        return BackendTimeout(TOO_LONG.format(limit=limit, what=what), detail=f"timeout: {what}")


def _nothing(*_: object) -> None:
    """What an exchange that is over does when a limit passes."""
