"""What the hot path takes for granted of uvicorn's and httptools' insides.

None of it is a public interface. When an upgrade breaks one of these, that is the list of what to
look at in `edge/cycle.py`, `edge/protocol.py` and `edge/server.py`; no other test needs to be
understood first.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import textwrap
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import httptools
import pytest
import uvicorn
import uvloop
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from gateway import errors
from gateway.edge.cycle import HotCycle
from gateway.edge.protocol import GatewayProtocol
from gateway.edge.server import Server


def tree(thing: Any) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(thing)))


def attributes(thing: Any, *owners: str) -> set[str]:
    """The attributes that the source of `thing` uses of these expressions."""
    return {
        node.attr
        for node in ast.walk(tree(thing))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in owners
    }


def parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


class Transport:
    """As much of a transport as a protocol asks for at its beginning."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def get_extra_info(self, name: str) -> Any:
        return None

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


async def app(scope: Any, receive: Any, send: Any) -> None: ...


@pytest.fixture
async def protocol() -> HttpToolsProtocol:
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
    config.load()
    protocol = HttpToolsProtocol(config=config, server_state=ServerState(), app_state={})
    protocol.connection_made(Transport())  # type: ignore[arg-type]  # a part of one
    return protocol


async def test_what_is_tested_here_runs_on_the_loop_of_serve() -> None:
    assert isinstance(asyncio.get_running_loop(), uvloop.Loop)


# A request/response cycle, as uvicorn's protocol sees it


def test_what_uvicorn_asks_of_a_cycle() -> None:
    """A hot cycle stands in its place, so it must have every attribute that is looked at."""
    owners = ("self.cycle", "cycle", "existing_cycle")
    used = attributes(HttpToolsProtocol, *owners)
    asgi_only = {"run_asgi", "body"}
    """Reached only by way of methods that a hot cycle keeps away from."""
    assert used - asgi_only == {
        "response_complete",
        "disconnected",
        "keep_alive",
        "more_body",
        "message_event",
    }
    made = attributes(HotCycle.__init__, "self") | vars(HotCycle).keys()
    assert used - asgi_only <= made


@pytest.mark.parametrize("method", ["on_body", "on_message_complete", "_start_asgi_task"])
def test_where_uvicorn_would_feed_a_cycle_the_gateway_goes_first(method: str) -> None:
    source = inspect.getsource(getattr(GatewayProtocol, method))
    assert "isinstance(" in source and "HotCycle" in source


def test_a_cycle_of_uvicorns_own() -> None:
    """What the gateway asks of it, for requests that are not hot."""
    made = attributes(RequestResponseCycle.__init__, "self")
    asked = {"response_complete", "response_started", "keep_alive"}
    assert asked | {"disconnected", "message_event"} <= made


# The protocol


def test_the_methods_that_are_replaced_or_called() -> None:
    expected = {
        "connection_made": ["self", "transport"],
        "connection_lost": ["self", "exc"],
        "data_received": ["self", "data"],
        "on_message_begin": ["self"],
        "on_header": ["self", "name", "value"],
        "on_headers_complete": ["self"],
        "on_body": ["self", "body"],
        "on_message_complete": ["self"],
        "on_response_complete": ["self"],
        "_start_asgi_task": ["self", "cycle", "app"],
        "_unsupported_upgrade_warning": ["self"],
        "_get_upgrade": ["self"],
        "send_400_response": ["self", "msg"],
        "timeout_keep_alive_handler": ["self"],
        "pause_writing": ["self"],
        "resume_writing": ["self"],
    }
    found = {name: parameters(getattr(HttpToolsProtocol, name)) for name in expected}
    assert found == expected


def test_every_method_that_hides_one_of_uvicorns_is_on_that_list() -> None:
    """A new uvicorn may come to have a method that ours would replace by chance."""
    own = {name for name, value in vars(GatewayProtocol).items() if inspect.isfunction(value)}
    hidden = own & set(dir(HttpToolsProtocol)) - {"__init__"}
    assert hidden == {
        "_start_asgi_task",
        "_unsupported_upgrade_warning",
        "connection_lost",
        "connection_made",
        "data_received",
        "on_body",
        "on_header",
        "on_headers_complete",
        "on_message_begin",
        "on_message_complete",
        "on_response_complete",
        "pause_writing",
        "resume_writing",
        "send_400_response",
        "timeout_keep_alive_handler",
    }


def test_no_attribute_of_ours_is_one_of_uvicorns() -> None:
    theirs = attributes(HttpToolsProtocol.__init__, "self")
    ours = {
        node.attr
        for node in ast.walk(tree(GatewayProtocol.__init__))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    assert not ours & theirs


async def test_the_attributes_that_are_used(protocol: HttpToolsProtocol) -> None:
    defined = vars(protocol).keys() | set(dir(GatewayProtocol))
    defined |= attributes(GatewayProtocol.__init__, "self")
    begun = attributes(HttpToolsProtocol.on_message_begin, "self")
    used = attributes(GatewayProtocol, "self")
    assert used <= defined | begun, "the gateway's protocol uses what uvicorn does not have"
    assert {"url", "headers", "scope", "expect_100_continue"} <= begun
    assert isinstance(protocol.pipeline, deque)
    assert isinstance(protocol.flow, FlowControl)
    assert isinstance(protocol.tasks, set) and protocol.tasks is protocol.server_state.tasks
    assert protocol.cycle is None
    assert protocol.flow.write_paused is False and protocol.flow.read_paused is False


async def test_waiting_requests_are_pairs_and_the_oldest_is_popped(
    protocol: HttpToolsProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`appendleft` by both, `pop` by uvicorn."""
    started: list[Any] = []
    monkeypatch.setattr(
        protocol, "_start_asgi_task", lambda cycle, app: started.append((cycle, app))
    )
    protocol.pipeline.appendleft(("first", "app"))  # type: ignore[arg-type]  # none is run
    protocol.pipeline.appendleft(("second", "app"))  # type: ignore[arg-type]  # none is run
    protocol.on_response_complete()
    assert started == [("first", "app")]
    protocol.on_response_complete()
    assert started[1:] == [("second", "app")]
    assert protocol.timeout_keep_alive_task is None, "it runs only when nobody waits"
    protocol.on_response_complete()
    assert protocol.timeout_keep_alive_task is not None
    protocol.timeout_keep_alive_task.cancel()


async def test_when_uvicorn_starts_a_request_and_when_it_queues_it(
    protocol: HttpToolsProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(protocol, "_start_asgi_task", lambda cycle, app: started.append(cycle))
    protocol.data_received(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n")
    first = protocol.cycle
    assert started == [first] and not protocol.pipeline
    protocol.data_received(b"GET /b HTTP/1.1\r\nhost: x\r\n\r\n")
    assert started == [first]
    assert [cycle for cycle, _ in protocol.pipeline] == [protocol.cycle]
    assert protocol.flow.read_paused, "the gateway resumes reading behind it"


async def test_header_names_come_in_lower_case(
    protocol: HttpToolsProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "_start_asgi_task", lambda cycle, app: None)
    protocol.data_received(b"POST /v1/x?y HTTP/1.0\r\nX-API-Key: K\r\nExpect: 100-Continue\r\n\r\n")
    assert protocol.headers == [(b"x-api-key", b"K"), (b"expect", b"100-Continue")]
    assert protocol.url == b"/v1/x?y"
    assert protocol.scope["http_version"] == "1.0"
    assert protocol.expect_100_continue is True


async def test_an_error_of_the_parser_ends_in_send_400_response(
    protocol: HttpToolsProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that a callback raises, which is how the gateway stops the parser."""
    told: list[str] = []
    monkeypatch.setattr(protocol, "send_400_response", told.append)
    protocol.data_received(b"no HTTP\r\n\r\n")
    assert len(told) == 1
    assert issubclass(httptools.HttpParserCallbackError, httptools.HttpParserError)


async def test_an_offer_to_upgrade_stops_the_parser_behind_the_head(
    protocol: HttpToolsProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway reads the head again without the offer, from where this exception says."""
    head = b"POST / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\n"
    parser = httptools.HttpRequestParser(type("Nobody", (), {})())
    with pytest.raises(httptools.HttpParserUpgrade) as stopped:
        parser.feed_data(head + b"{}")
    assert stopped.value.args[0] == len(head)
    told: list[bytes | None] = []
    monkeypatch.setattr(protocol, "_start_asgi_task", lambda cycle, app: None)
    monkeypatch.setattr(
        protocol, "_unsupported_upgrade_warning", lambda: told.append(protocol._get_upgrade())
    )
    protocol.data_received(head + b"{}")
    assert told == [b"h2c"]


async def test_the_flow_pauses_once_and_resumes_once(protocol: HttpToolsProtocol) -> None:
    flow = protocol.flow
    for _ in range(2):
        flow.pause_reading()
        assert flow.read_paused
    for _ in range(2):
        flow.resume_reading()
        assert not flow.read_paused
    protocol.pause_writing()
    assert flow.write_paused
    protocol.resume_writing()
    assert not flow.write_paused


async def test_a_lost_connection_marks_its_cycle(protocol: HttpToolsProtocol) -> None:
    class Cycle:
        response_complete = False
        disconnected = False
        message_event = HotCycle.message_event

    protocol.cycle = Cycle()  # type: ignore[assignment]  # a part of one
    protocol.connection_lost(None)
    assert protocol.cycle.disconnected


async def test_a_server_that_stops_lets_an_answer_finish(protocol: HttpToolsProtocol) -> None:
    class Cycle:
        response_complete = False
        keep_alive = True

    protocol.cycle = cycle = Cycle()  # type: ignore[assignment]  # a part of one
    protocol.shutdown()
    assert cycle.keep_alive is False and not protocol.transport.is_closing()
    cycle.response_complete = True
    protocol.shutdown()
    assert protocol.transport.is_closing()


# Around it


def test_every_status_of_an_error_has_its_line() -> None:
    def below(kind: type[errors.GatewayError]) -> set[int]:
        return {kind.status}.union(*(below(one) for one in kind.__subclasses__()))

    for status in below(errors.GatewayError) | {200}:
        assert STATUS_LINE[status].startswith(b"HTTP/1.1 %d " % status)
        assert STATUS_LINE[status].endswith(b"\r\n")


def test_how_uvicorn_makes_a_protocol() -> None:
    """By keywords, which is what lets `partial` give it the gateway's parts before them."""
    source = inspect.getsource(uvicorn.Server.startup)
    for keyword in ("config=config", "server_state=", "app_state=", "_loop=_loop"):
        assert keyword in source
    taken = parameters(HttpToolsProtocol.__init__)
    assert taken == ["self", "config", "server_state", "app_state", "_loop"]
    config = uvicorn.Config(app, http=partial(GatewayProtocol, None, None))  # type: ignore[arg-type]  # any callable does
    config.load()
    assert isinstance(config.http_protocol_class, partial)


def test_what_the_draining_server_rests_on() -> None:
    assert parameters(uvicorn.Server.handle_exit) == ["self", "sig", "frame"]
    used = attributes(Server, "self")
    theirs = set(dir(uvicorn.Server)) | attributes(uvicorn.Server, "self")
    own = attributes(Server.__init__, "self") | set(vars(Server))
    assert used <= theirs | own


def test_the_keep_alive_of_http_1_0_is_not_kept() -> None:
    """As uvicorn decides it for its own cycles."""
    source = inspect.getsource(httptools_impl.HttpToolsProtocol.on_headers_complete)
    assert 'http_version != "1.0" and self.parser.should_keep_alive()' in source
