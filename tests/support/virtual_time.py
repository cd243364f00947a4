"""An event loop whose clock jumps to the next timer instead of waiting for it.

What runs on it takes no time but what it sleeps, the same on every machine however busy.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Waits for no timer: the time until it has passed at once, unless something was ready."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        found = super().select(0)
        if not found:
            self.now += max(0.0, timeout)
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, selector: _Jumping) -> None:
        super().__init__(selector)
        self.time = lambda: selector.now  # type: ignore[method-assign]  # the loop's own clock


def run(main: Callable[[Callable[[], float]], Coroutine[Any, Any, T]]) -> T:
    """Run `main(clock)` on such a loop; `clock` tells its seconds, from 0."""
    selector = _Jumping()
    with asyncio.Runner(loop_factory=lambda: _Loop(selector)) as runner:
        return runner.run(main(lambda: selector.now))
