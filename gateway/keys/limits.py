"""How much a key may use: requests and tokens in a minute, and requests at once.

The burst rule: an allowance of N a minute fills evenly, N / 60 a second, and never holds more than
N. So a key that was idle may use N at once, no stretch of T seconds sees more than
N · (1 + T / 60) requests, and the long run keeps to N a minute.

Tokens are known only when an answer is complete. A request is admitted while at least one token
is left and charged afterwards, so requests that run side by side can overdraw the allowance; the
debt is paid off before the next one is admitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from gateway.errors import RateLimited
from gateway.keys.keyring import Key
from gateway.records import Refusal

Headers = list[tuple[bytes, bytes]]

MINUTE = 60.0

# The part of one unit that may be missing, since sums of floats are off by a little.
TOLERANCE = 1e-3

# When a place falls free is anyone's guess; a second is what clients' retries start with.
CONCURRENCY_RETRY = 1.0

_REQUESTS = (
    b"x-ratelimit-limit-requests",
    b"x-ratelimit-remaining-requests",
    b"x-ratelimit-reset-requests",
)
_TOKENS = (
    b"x-ratelimit-limit-tokens",
    b"x-ratelimit-remaining-tokens",
    b"x-ratelimit-reset-tokens",
)

OVER_CONCURRENCY = (
    "Key `{name}` has {limit} requests running, as many as it may have at once; let one end and "
    "try again in 1s."
)
OVER_RATE = "Key `{name}` has used its {limit} {what} per minute; try again in {wait}s."


class LimitReached(RateLimited):
    """A limit of the key refuses the request; `headers` say what is left of each."""

    def __init__(self, message: str, limit: Refusal, wait: float, headers: Headers) -> None:
        super().__init__(message, retry_after=wait, refusal=limit)
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Standing:
    """What a key uses now: requests running, and what is left of each limit it has."""

    running: int
    requests_left: int | None
    tokens_left: int | None


class Allowance:
    """One limit of N units a minute, as the time at which the whole of it will be there again."""

    __slots__ = ("_full_at", "_unit", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._unit = MINUTE / limit
        self._full_at = -math.inf

    def wait(self, now: float) -> float:
        """Seconds until a whole unit is there; zero or less if one is."""
        return self._full_at - now + self._unit * (1 - TOLERANCE) - MINUTE

    def take(self, now: float, units: int) -> None:
        """Use up so many units, also more than are there."""
        self._full_at = max(self._full_at, now) + units * self._unit

    def reset(self, now: float) -> float:
        """Seconds until the whole allowance is there."""
        return max(self._full_at - now, 0.0)

    def left(self, until_full: float) -> int:
        """Whole units that are there, by the seconds until all of them are."""
        return max(int((MINUTE - until_full) / self._unit + TOLERANCE), 0)


class _Account:
    """What one key has used, by the limits it had when it last asked."""

    __slots__ = ("key", "requests", "running", "tokens")

    def __init__(self, key: Key) -> None:
        self.running = 0
        self.requests: Allowance | None = None
        self.tokens: Allowance | None = None
        self.configure(key)

    def configure(self, key: Key) -> None:
        """Take other limits over; a limit that changed starts with its whole allowance."""
        self.key = key
        self.requests = _adopt(self.requests, key.requests_per_minute)
        self.tokens = _adopt(self.tokens, key.tokens_per_minute)

    def idle(self, now: float) -> bool:
        """Whether forgetting the account would change nothing."""
        allowances = (self.requests, self.tokens)
        return not self.running and not any(one and one.reset(now) for one in allowances)

    def headers(self, now: float) -> Headers:
        lines: Headers = []
        if self.requests is not None:
            lines += _headers(_REQUESTS, self.requests, now)
        if self.tokens is not None:
            lines += _headers(_TOKENS, self.tokens, now)
        return lines


class Grant:
    """A request's admission: charge it once, then release it once; more changes nothing."""

    __slots__ = ("_account", "_charged", "_clock", "_released")

    def __init__(self, account: _Account, clock: Callable[[], float]) -> None:
        self._account = account
        self._clock = clock
        self._charged = False
        self._released = False

    @property
    def headers(self) -> Headers:
        """`x-ratelimit-*` as OpenAI writes them, for the limits the key has, as of now."""
        return self._account.headers(self._clock())

    def charge(self, tokens: int) -> None:
        """Book the tokens the request used, prompt and completion together."""
        if self._charged:
            return
        self._charged = True
        allowance = self._account.tokens
        if allowance is not None and tokens > 0:
            allowance.take(self._clock(), tokens)

    def release(self) -> None:
        """The request no longer runs."""
        if not self._released:
            self._released = True
            self._account.running -= 1


class Limiter:
    """Admits requests within the limits of their keys; belongs to the event loop's thread.

    Limits are those of the `Key` a request comes with, so a reload needs no word here: what was
    used stays used where a limit is unchanged. There is an account for each key that runs
    something or has not its whole allowance, and at most as many idle ones again.

    Args:
        clock: monotonic seconds.
    """

    __slots__ = ("_accounts", "_clock", "_sweep_at")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._accounts: dict[str, _Account] = {}
        self._sweep_at = 64

    def admit(self, key: Key) -> Grant:
        """Count a request that begins now.

        Raises:
            LimitReached: names the limit, its value and the seconds to wait; the request counts
                against none of the limits.
        """
        account = self._accounts.get(key.id)
        if account is None:
            account = self._open(key)
        elif account.key is not key:
            account.configure(key)
        if key.max_concurrency is not None and account.running >= key.max_concurrency:
            raise self._too_many(account)
        requests, tokens = account.requests, account.tokens
        if requests is not None or tokens is not None:
            now = self._clock()
            if (requests and requests.wait(now) > 0) or (tokens and tokens.wait(now) > 0):
                raise _exhausted(account, now)
            if requests is not None:
                requests.take(now, 1)
        account.running += 1
        return Grant(account, self._clock)

    def standing(self, key: Key) -> Standing:
        """What the key uses now, for the operator."""
        account = self._accounts.get(key.id) or _Account(key)
        requests = account.requests or _adopt(None, key.requests_per_minute)
        tokens = account.tokens or _adopt(None, key.tokens_per_minute)
        now = self._clock()
        return Standing(
            account.running,
            requests.left(requests.reset(now)) if requests else None,
            tokens.left(tokens.reset(now)) if tokens else None,
        )

    def _open(self, key: Key) -> _Account:
        if len(self._accounts) >= self._sweep_at:
            now = self._clock()
            kept = {id: one for id, one in self._accounts.items() if not one.idle(now)}
            self._accounts = kept
            self._sweep_at = max(64, 2 * len(kept))
        account = self._accounts[key.id] = _Account(key)
        return account

    def _too_many(self, account: _Account) -> LimitReached:
        key = account.key
        message = OVER_CONCURRENCY.format(name=key.name, limit=key.max_concurrency)
        headers = account.headers(self._clock())
        return LimitReached(message, Refusal.MAX_CONCURRENCY, CONCURRENCY_RETRY, headers)


def _adopt(old: Allowance | None, limit: int | None) -> Allowance | None:
    if old is not None and old.limit == limit:
        return old
    return None if limit is None else Allowance(limit)


def _exhausted(account: _Account, now: float) -> LimitReached:
    """Names the limit that has to be waited for longest, so that one wait is enough."""
    waits = [
        (allowance.wait(now), refusal, what, allowance.limit)
        for allowance, refusal, what in (
            (account.requests, Refusal.REQUESTS_PER_MINUTE, "requests"),
            (account.tokens, Refusal.TOKENS_PER_MINUTE, "tokens (prompt and completion)"),
        )
        if allowance is not None
    ]
    seconds, refusal, what, limit = max(waits)
    wait = max(math.ceil(seconds), 1)
    message = OVER_RATE.format(name=account.key.name, limit=limit, what=what, wait=wait)
    return LimitReached(message, refusal, float(wait), account.headers(now))


def _headers(names: tuple[bytes, bytes, bytes], one: Allowance, now: float) -> Headers:
    limit, remaining, reset = names
    until_full = one.reset(now)
    return [
        (limit, b"%d" % one.limit),
        (remaining, b"%d" % one.left(until_full)),
        (reset, duration(until_full)),
    ]


def duration(seconds: float) -> bytes:
    """A span as OpenAI's headers write it: `120ms`, `1.2s`, `6m0s`; rounded up to milliseconds."""
    ms = math.ceil(seconds * 1000 - TOLERANCE)
    if ms < 1000:
        return b"%dms" % ms if ms > 0 else b"0s"
    minutes, ms = divmod(ms, 60_000)
    rest = f"{ms / 1000:g}s".encode()
    return b"%dm%b" % (minutes, rest) if minutes else rest
