"""The port an exchange writes its answer to; `edge` has the two writers behind it."""

from __future__ import annotations

from typing import Protocol

Headers = list[tuple[bytes, bytes]]


class Reply(Protocol):
    """One answer to one client. Calls never block; a full buffer is told by `on_pause`."""

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """Give the head, which leaves with what follows it.

        `length` is the body's, or None where it ends when it ends.
        """

    def write(self, data: bytes) -> None:
        """Write a piece of the body."""

    def finish(self, data: bytes) -> None:
        """Write the last piece of the body, if any: the answer is complete."""

    def abort(self) -> None:
        """Break off so that the client can see that the answer is not complete."""
