"""What an exchange takes from the other rooms; `app.py` fills it in and swaps it on reload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.admission.gate import Gate
from gateway.exchange.pins import Pins
from gateway.keys.keyring import KeyRing
from gateway.keys.limits import Limiter
from gateway.records import Record
from gateway.routing.backend import Backend
from gateway.routing.table import Route, Table
from gateway.settings import Settings
from gateway.upstream.pool import Pool


@dataclass(slots=True)
class Context:
    """The parts in force now. A request reads what it needs once and keeps it."""

    settings: Settings
    keyring: KeyRing
    table: Table
    limiter: Limiter
    pins: Pins
    gate_of: Callable[[Route], Gate]
    pool_of: Callable[[Backend], Pool]
    context_window: Callable[[str], int | None]
    record: Callable[[Record], None]
    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    new_id: Callable[[], str]
    draining: bool = False
