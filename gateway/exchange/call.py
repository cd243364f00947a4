"""A request as the edge understood it: everything an exchange needs, and nothing of the client."""

from __future__ import annotations

import msgspec

from gateway.exchange.form import Forms
from gateway.keys.keyring import Key
from gateway.records import Api
from gateway.routing.backend import Backend
from gateway.routing.table import Arm, Route


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What to send, to whom, and what to mind in the answer.

    Attributes:
        forms: what to ask a backend, in each way there is.
        api: what the client speaks.
        headers: the client's headers that may cross, as lines of a request head.
        arm: where the split, or the client's own choice, put the request.
        stream: the client asked for an event stream.
        pinned: the only backend that can answer (it holds an earlier response), if any.
        rename: (the model as the backend knows it, as the client named it).
        withhold_usage: the usage frame was asked for by the gateway, not by the client.
        generates: the answer is a new one; one that is looked at again costs no tokens, and that it
            cannot be had says nothing of the backend.
        echo_prompt: the prompt that a completion repeats before it generates.
    """

    method: bytes
    forms: Forms
    api: Api
    headers: bytes
    key: Key
    route: Route
    arm: Arm
    session: int
    stream: bool
    forced: bool
    rename: tuple[bytes, bytes]
    pinned: Backend | None = None
    withhold_usage: bool = False
    generates: bool = True
    echo_prompt: str | None = None
