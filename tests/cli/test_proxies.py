"""Which proxy of the environment a client would use."""

from __future__ import annotations

import pytest

from gateway.cli.address import parse
from gateway.cli.proxies import Proxy, applying


@pytest.mark.parametrize(
    ("url", "env", "expected"),
    [
        ("http://gw:80", {"HTTPS_PROXY": "http://p"}, None),
        ("https://gw", {"HTTPS_PROXY": "http://p"}, Proxy("HTTPS_PROXY", "http://p")),
        ("https://gw", {"https_proxy": "p:1"}, Proxy("https_proxy", "http://p:1")),
        ("http://gw", {"http_proxy": "l", "HTTP_PROXY": "u"}, Proxy("http_proxy", "http://l")),
        ("http://gw", {"http_proxy": "", "ALL_PROXY": "a"}, Proxy("ALL_PROXY", "http://a")),
        ("http://gw", {"HTTP_PROXY": "p", "NO_PROXY": "*"}, None),
        ("http://gw.corp", {"HTTP_PROXY": "p", "NO_PROXY": ".corp"}, None),
        ("http://gw.corp", {"HTTP_PROXY": "p", "NO_PROXY": "x, corp"}, None),
        ("http://gw.corp:81", {"HTTP_PROXY": "p", "NO_PROXY": "gw.corp:81"}, None),
        ("http://[::1]:81", {"HTTP_PROXY": "p", "NO_PROXY": "::1"}, None),
        ("http://gw:81", {"HTTP_PROXY": "p", "NO_PROXY": "gw:82"}, Proxy("HTTP_PROXY", "http://p")),
        ("http://agw", {"HTTP_PROXY": "p", "NO_PROXY": "gw"}, Proxy("HTTP_PROXY", "http://p")),
    ],
)
def test_which_proxy_applies(url: str, env: dict[str, str], expected: Proxy | None) -> None:
    assert applying(parse(url), env) == expected
