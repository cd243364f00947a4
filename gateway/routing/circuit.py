"""A circuit breaker: stop sending to a backend that fails every time, and find the way back."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class State(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Circuit:
    """Opens on consecutive failures; after a cooldown one request at a time may try again.

    A trial holds the circuit for one cooldown. If nothing is heard of it by then (the client
    left, or the backend is slow or full), another may go: a lost trial must not shut a backend
    out for good, and who releases what need not be tracked.

    Args:
        clock: monotonic seconds.
        threshold: consecutive failures that open it.
        cooldown: seconds until the first trial; doubles each time a trial fails.
        longest: seconds the cooldown grows to.
    """

    __slots__ = (
        "_base",
        "_clock",
        "_cooldown",
        "_failures",
        "_longest",
        "_retry_at",
        "_threshold",
        "_trial",
        "closed",
    )

    def __init__(
        self,
        clock: Callable[[], float],
        threshold: int = 5,
        cooldown: float = 5.0,
        longest: float = 60.0,
    ) -> None:
        self._clock = clock
        self._threshold = threshold
        self._base = self._cooldown = cooldown
        self._longest = longest
        self._failures = 0
        self._retry_at = 0.0
        self._trial = False
        self.closed = True

    @property
    def state(self) -> State:
        if self.closed:
            return State.CLOSED
        return State.HALF_OPEN if self._trial or self._cooled() else State.OPEN

    def allows(self) -> bool:
        """Whether a request may go now. Asking changes nothing; `begin` takes the trial."""
        return self.closed or self._cooled()

    def begin(self) -> None:
        """A request that was allowed goes."""
        if not self.closed:
            self._trial = True
            self._retry_at = self._clock() + self._cooldown

    def success(self) -> None:
        """The backend answered a request.

        While the circuit is open this is a late result of a request sent before it opened, and
        says nothing new.
        """
        if self.closed or self.state is State.HALF_OPEN:
            self._close(failures=0)
            self._cooldown = self._base

    def failure(self) -> None:
        """A request failed by the backend's fault: no connection, a 5xx, a cut or broken reply.

        A 429 is load, no fault, and no success either: nobody tells of it here.

        A backend that dies takes all its open requests with it: those that fail while the
        circuit is open do not lengthen the cooldown.
        """
        if self.closed:
            self._failures += 1
            if self._failures >= self._threshold:
                self._open()
        elif self.state is State.HALF_OPEN:
            self._cooldown = min(2 * self._cooldown, self._longest)
            self._open()

    def probed(self) -> None:
        """A health probe succeeded.

        An engine may call itself healthy and fail every request, so this closes the circuit only
        after the cooldown, and on probation: the next failure opens it again, for longer.
        """
        if not self.closed and self._cooled():
            self._close(failures=self._threshold - 1)
            self._cooldown = min(2 * self._cooldown, self._longest)

    def _cooled(self) -> bool:
        return self._clock() >= self._retry_at

    def _open(self) -> None:
        self.closed = self._trial = False
        self._retry_at = self._clock() + self._cooldown

    def _close(self, failures: int) -> None:
        self.closed = True
        self._trial = False
        self._failures = failures
