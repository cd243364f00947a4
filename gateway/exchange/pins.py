"""Which backend holds which stored response, and for which key.

vLLM keeps responses in one process's memory, so a follow-up must reach that very process; and
since anyone who guesses an id could read it, it must come with the key that made it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple


class Pin(NamedTuple):
    """Where a response is: `name` is what the client called the model."""

    backend: str
    arm: str
    model: str
    name: str
    key_id: str


class Pins:
    """The most recent response ids; older ones are forgotten, as a backend forgets them.

    Args:
        size: ids kept.
    """

    def __init__(self, size: int = 50_000) -> None:
        self._size = size
        self._pins: OrderedDict[str, Pin] = OrderedDict()

    def add(self, response_id: str, pin: Pin) -> None:
        self._pins[response_id] = pin
        if len(self._pins) > self._size:
            self._pins.popitem(last=False)

    def get(self, response_id: str, key_id: str) -> Pin | None:
        """The pin, if this key made the response."""
        pin = self._pins.get(response_id)
        return pin if pin is not None and pin.key_id == key_id else None
