"""How an attempt at a backend fails, and what follows from it."""

from __future__ import annotations

from enum import Enum

from gateway.errors import BackendFailed, GatewayError
from gateway.protocols.reword import Reworded

UNREADABLE = "The model's server sent an answer that cannot be read; send the request again."


class Blame(Enum):
    """What a failed attempt says of its backend.

    A full backend is no broken one: taken out, it would leave its load to those that are as full.
    Nor has it shown that it can answer.
    """

    BACKEND = "it is at fault"
    REQUEST = "it works, the request is at fault"
    NOBODY = "it has no room for now"


class AttemptFailed(Exception):
    """The attempt brought no answer.

    Attributes:
        error: what to tell the client if no other backend is tried.
        retryable: another backend may do better.
        blame: whose fault that is.
    """

    def __init__(self, error: GatewayError, *, retryable: bool, blame: Blame) -> None:
        super().__init__(str(error))
        self.error = error
        self.retryable = retryable
        self.blame = blame

    def or_sooner(self, other: AttemptFailed) -> AttemptFailed:
        """Of two that had no room, the one that may have some first: so long is to be waited."""
        full = self.blame is other.blame is Blame.NOBODY
        return other if full and _wait(other) < _wait(self) else self

    def bare(self) -> AttemptFailed:
        """Itself, without the places it was raised at.

        They hold the attempt, which holds this: a cycle that only the collector would free.
        """
        self.__traceback__ = self.error.__traceback__ = None
        return self


def _wait(failed: AttemptFailed) -> float:
    return failed.error.retry_after or 0.0


def judged(reworded: Reworded) -> AttemptFailed:
    """The backend answered an error; one of the server's kind is its own fault."""
    error = reworded.error
    if reworded.full:
        blame = Blame.NOBODY
    else:
        blame = Blame.BACKEND if error.status >= 500 else Blame.REQUEST
    return AttemptFailed(error, retryable=reworded.retryable, blame=blame)


def backend_fault(error: GatewayError) -> AttemptFailed:
    """The backend failed; another may do better."""
    return AttemptFailed(error, retryable=True, blame=Blame.BACKEND)


def unreadable(detail: str) -> AttemptFailed:
    """The backend answered what is not its API."""
    return backend_fault(BackendFailed(UNREADABLE, detail=detail))
