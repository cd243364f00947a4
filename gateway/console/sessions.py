"""Who is signed in, and how often someone may try to be."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

LIFETIME = 12 * 3600.0
"""Seconds a session lasts."""

MOST = 1000
"""Sessions at a time; the oldest makes room."""

FREE_TRIES = 5
LONGEST_WAIT = 60.0
FORGOTTEN = 900.0
"""Seconds after which a failure no longer counts."""

EVERYONE = "*"
"""Tries of all addresses together, for who has many addresses; it allows `SHARED` times more."""
SHARED = 20


class Role(StrEnum):
    """What an admin key lets its holder do."""

    ADMIN = "admin"
    READ = "read"


@dataclass(slots=True)
class Session:
    """Attributes:
    key: sent to the gateway with everything this person asks of it.
    name: what the person calls themselves, for the history.
    ends: in the clock's seconds.
    dark: how pages look; None follows the browser.
    """

    key: str = field(repr=False)
    role: Role
    name: str
    ends: float
    dark: bool | None = None

    @property
    def actor(self) -> str:
        """Who changes something, for the history."""
        printable = "".join(filter(str.isprintable, self.name))
        shown = printable.encode("ascii", "replace").decode()
        return f"{shown} (console)" if shown else "console"


class Sessions:
    """Sessions by the token their browser holds; only the token's digest is kept."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open: OrderedDict[bytes, Session] = OrderedDict()

    def start(self, key: str, role: Role, name: str) -> str:
        """The token of a new session."""
        token = secrets.token_urlsafe(32)
        self._open[_digest(token)] = Session(key, role, name, self._clock() + LIFETIME)
        while len(self._open) > MOST:
            self._open.popitem(last=False)
        return token

    def find(self, token: str) -> Session | None:
        session = self._open.get(_digest(token))
        if session is None or self._clock() < session.ends:
            return session
        self.end(token)
        return None

    def end(self, token: str) -> None:
        session = self._open.pop(_digest(token), None)
        if session is not None:
            session.ends = 0.0

    def holds(self, session: Session) -> bool:
        """Whether a session goes on: pages that are open ask, since they outlive its cookie."""
        return self._clock() < session.ends and any(one is session for one in self._open.values())


def _digest(token: str) -> bytes:
    # A look-up by digest tells by its time nothing of use about a token.
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


class Throttle:
    """Makes who fails to sign in wait, twice as long each time.

    A try counts as failed from its beginning, so that many at once are no way around.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Seconds until the next try of this address is looked at; 0 for now."""
        return max(
            self._wait(address, FREE_TRIES),
            self._wait(EVERYONE, FREE_TRIES * SHARED),
        )

    def begin(self, address: str) -> None:
        for one in (address, EVERYONE):
            count, last = self._failures.pop(one, (0, 0.0))
            now = self._clock()
            self._failures[one] = (count + 1 if now - last < FORGOTTEN else 1, now)
        while len(self._failures) > MOST:
            self._failures.popitem(last=False)

    def passed(self, address: str) -> None:
        """It was the right key."""
        self._failures.pop(address, None)
        self._failures.pop(EVERYONE, None)

    def _wait(self, one: str, free: int) -> float:
        count, last = self._failures.get(one, (0, 0.0))
        if count < free:
            return 0.0
        pause = min(LONGEST_WAIT, 2.0 ** min(count - free, 6))
        return float(max(0.0, last + pause - self._clock()))
