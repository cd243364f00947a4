"""Which headers cross the gateway, in either direction."""

from __future__ import annotations

import pytest

from gateway.exchange.headers import find, to_backend, to_client

Pairs = list[tuple[bytes, bytes]]


def crossing(headers: Pairs, *, engine_fields: bool = False) -> Pairs:
    """What of a request's headers comes out on the other side."""
    lines = to_backend(headers, engine_fields=engine_fields)
    assert lines == b"" or lines.endswith(b"\r\n")
    pairs = [line.split(b": ", 1) for line in lines.split(b"\r\n")[:-1]]
    return [(name, value) for name, value in pairs]


@pytest.mark.parametrize(
    "name",
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ],
)
def test_headers_of_one_connection_stay_on_it(name: str) -> None:
    header = (name.encode(), b"x")
    assert crossing([header]) == []
    assert to_client([header]) == []


@pytest.mark.parametrize("name", ["authorization", "x-api-key", "api-key", "cookie"])
def test_credentials_of_the_client_do_not_reach_a_backend(name: str) -> None:
    assert crossing([(name.encode(), b"secret")], engine_fields=True) == []


@pytest.mark.parametrize(
    "name",
    ["host", "expect", "content-length", "content-encoding", "accept-encoding", "x-request-id"],
)
def test_what_the_gateway_says_itself_is_not_said_twice(name: str) -> None:
    assert crossing([(name.encode(), b"x")], engine_fields=True) == []


@pytest.mark.parametrize(
    "name", ["x-gateway-arm", "x-gateway-backend", "x-gateway-", "x-gateway-anything"]
)
def test_the_gateways_own_headers_never_cross(name: str) -> None:
    header = (name.encode(), b"x")
    assert crossing([header], engine_fields=True) == []
    assert to_client([header]) == []


@pytest.mark.parametrize("name", ["x-vllm-priority", "x-data-parallel-rank"])
def test_headers_that_disturb_others_need_the_keys_leave(name: str) -> None:
    header = (name.encode(), b"1")
    assert crossing([header]) == []
    assert crossing([header], engine_fields=True) == [header]


@pytest.mark.parametrize(
    "header",
    [
        (b"content-type", b"application/json"),
        (b"accept", b"text/event-stream"),
        (b"user-agent", b"claude-cli/2.1.197"),
        (b"anthropic-version", b"2023-06-01"),
        (b"anthropic-beta", b"a, b"),
        (b"x-session-id", b"s"),
        (b"traceparent", b"00-1-2-01"),
        (b"x-gatewayish", b"\xe4 and spaces"),
        (b"x-empty", b""),
    ],
)
def test_everything_else_reaches_the_backend_as_it_came(header: tuple[bytes, bytes]) -> None:
    assert crossing([header]) == [header]


def test_order_and_repetition_are_kept() -> None:
    headers = [(b"x-b", b"1"), (b"x-a", b"2"), (b"x-b", b"3")]
    assert crossing(headers) == headers
    assert to_client(headers) == headers


@pytest.mark.parametrize(
    "name",
    [
        "content-length",
        "content-type",
        "cache-control",
        "x-accel-buffering",
        "date",
        "server",
        "set-cookie",
        "x-request-id",
        "access-control-allow-origin",
        "access-control-allow-credentials",
    ],
)
def test_what_a_backend_may_not_say_to_a_client(name: str) -> None:
    assert to_client([(name.encode(), b"x")]) == []


@pytest.mark.parametrize("name", ["x-engine", "retry-after", "x-ratelimit-limit-requests"])
def test_everything_else_reaches_the_client(name: str) -> None:
    assert to_client([(name.encode(), b"x")]) == [(name.encode(), b"x")]


@pytest.mark.parametrize(
    "connection",
    [
        [b"x-hop"],
        [b"keep-alive, X-Hop"],
        [b"close,x-hop ,  other"],
        [b"keep-alive", b"x-hop"],
        [b"close", b"Keep-Alive, x-hop"],
    ],
)
def test_headers_that_connection_names_stay_too(connection: list[bytes]) -> None:
    headers = [(b"connection", value) for value in connection]
    headers += [(b"x-hop", b"1"), (b"x-kept", b"1")]
    assert crossing(headers, engine_fields=True) == [(b"x-kept", b"1")]
    assert to_client(headers) == [(b"x-kept", b"1")]


def test_find_gives_the_first_value() -> None:
    headers = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]
    assert find(headers, b"a") == b"1"
    assert find(headers, b"c") == b""
