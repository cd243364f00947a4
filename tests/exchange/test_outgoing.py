"""What leaves for the client, and that nothing follows the end."""

from __future__ import annotations

import time

from gateway.exchange.outgoing import Outgoing
from gateway.exchange.reply import Headers
from gateway.records import Api


class Written:
    """A `Reply` that keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[str | bytes] = []

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        self.calls.append(f"{status} {length}")

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def finish(self, data: bytes) -> None:
        self.calls += [data, "end"]

    def abort(self) -> None:
        self.calls.append("abort")


def outgoing() -> tuple[Outgoing, Written]:
    reply = Written()
    return Outgoing(reply, Api.CHAT, "req_1", time.monotonic, [], []), reply


def test_a_sign_of_life_that_is_due_when_the_stream_ends_is_not_sent() -> None:
    """The clock is stopped by the request's task, which runs after the read that ended it."""
    answer, reply = outgoing()
    answer.keep_alive()
    answer.end_stream(b"data: [DONE]\n\n", 1)
    answer.keep_alive()
    assert reply.calls[-2:] == [b"data: [DONE]\n\n", "end"]


def test_what_is_written_is_counted() -> None:
    answer, _ = outgoing()
    answer.open_stream()
    answer.send(b"data: 1\n\n", 1)
    answer.end_stream(b"data: 2\n\ndata: 3\n\n", 2)
    assert (answer.bytes_out, answer.events, answer.finished) == (27, 3, True)
