"""What may stand in a request's head."""

from __future__ import annotations

import pytest

from gateway.bench.load import head


@pytest.mark.parametrize("value", ["", "chunk-512", "a b", "größer", "日本"])
def test_one_line_fits(value: str) -> None:
    assert head.fits(value)


@pytest.mark.parametrize(
    "value", ["a\r\nx: y", "a\n", "\ta", "a\x00b", "a\x7f", " a", "a ", "a\u2028b", "a\udcffb"]
)
def test_what_would_end_the_line_or_arrive_as_something_else_does_not(value: str) -> None:
    assert not head.fits(value)


def test_lines_end_and_empty_names_have_none() -> None:
    assert head.arm("b") + head.session("größer") == (
        b"x-gateway-arm: b\r\nx-session-id: " + "größer".encode() + b"\r\n"
    )
    assert head.arm("") == head.session("") == b""
