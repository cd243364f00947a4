"""A base URL taken apart."""

from __future__ import annotations

import pytest

from gateway.cli.address import parse


@pytest.mark.parametrize(
    ("url", "root", "prefix", "endpoint"),
    [
        ("http://h", "http://h", "", ""),
        ("HTTP://h:81//v1//", "http://h:81", "//v1", ""),
        ("https://u:p@h/llm/v1", "https://h/llm", "/v1", ""),
        ("http://h/api/v1/responses", "http://h/api", "/v1", "/responses"),
        ("http://h/v1/v1/", "http://h", "/v1/v1", ""),
        ("http://h/v1x", "http://h/v1x", "", ""),
        ("http://[::1]:8080/v1", "http://[::1]:8080", "/v1", ""),
    ],
)
def test_an_address_taken_apart(url: str, root: str, prefix: str, endpoint: str) -> None:
    address = parse(url)
    assert (address.root, address.prefix, address.endpoint) == (root, prefix, endpoint)


@pytest.mark.parametrize(
    ("url", "port"), [("http://h", 80), ("https://h", 443), ("http://h:0", 0), ("https://h:1", 1)]
)
def test_the_port_of_an_address(url: str, port: int) -> None:
    assert parse(url).port == port


def test_a_port_of_the_systems_choice_is_no_server_that_is_known() -> None:
    """admin.key of a configuration with port 0 is not for whatever listens on port 80."""
    assert not parse("http://127.0.0.1").same_server(parse("http://127.0.0.1:0"))


@pytest.mark.parametrize("url", ["", "h:8080", "ftp://h", "http://", "http://h:x", "http://a b/"])
def test_no_address(url: str) -> None:
    with pytest.raises(ValueError):
        parse(url)
