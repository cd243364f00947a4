"""What an exchange takes from the other rooms; `app.py` fills it in and swaps it on reload."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from gateway.admission.gate import Gate
from gateway.exchange.pins import Pins
from gateway.keys.keyring import KeyRing
from gateway.keys.limits import Limiter
from gateway.records import Record, Trace
from gateway.routing.backend import Backend
from gateway.routing.table import Route, Table
from gateway.settings import Settings
from gateway.upstream.pool import Pool

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(slots=True)
class Context:
    """The parts in force now. A request reads what it needs once and keeps it.

    Attributes:
        trace: from a request's headers to its place in a trace, and the headers with what the
            backend is to know of that; None where traces are off.
    """

    settings: Settings
    keyring: KeyRing
    table: Table
    limiter: Limiter
    pins: Pins
    gate_of: Callable[[Route], Gate]
    pool_of: Callable[[Backend], Pool]
    record: Callable[[Record], None]
    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    new_id: Callable[[], str]
    trace: Callable[[Headers], tuple[Trace, Headers]] | None = None
    draining: bool = False


def request_ids() -> Callable[[], str]:
    """Request ids: unique across restarts, and cheaper than asking the kernel each time."""
    run, numbers = secrets.token_hex(6), count()
    return lambda: f"req_{run}{next(numbers):08x}"
