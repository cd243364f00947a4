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


@pytest.mark.parametrize("url", ["", "h:8080", "ftp://h", "http://", "http://h:x", "http://a b/"])
def test_no_address(url: str) -> None:
    with pytest.raises(ValueError):
        parse(url)
