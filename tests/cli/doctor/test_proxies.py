"""Proxy variables that a client would go by, tried on real sockets."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.doctor.finding import Severity
from tests.cli.doctor.cases import case, found, one, other, reply
from tests.support.ports import nobody
from tests.support.simulated import Simulated

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_no_variable(both: Simulated, home: Path) -> None:
    finding = one(await found(case(both.it.url, home), "proxy"))
    assert (finding.severity, finding.seen) == (Severity.OK, "No proxy variable is set.")


async def test_a_local_proxy_that_is_gone(both: Simulated, home: Path) -> None:
    with nobody() as proxy:
        the = case(both.it.url, home, env={"HTTP_PROXY": proxy})
        finding = one(await found(the, "proxy"))
    assert finding.severity is Severity.ERROR
    assert finding.seen.startswith(f"HTTP_PROXY={proxy} is set, and 127.0.0.1 is not exempt")
    assert "connection refused" in finding.seen and "local proxy failed" in finding.why
    assert finding.fix == "export NO_PROXY=127.0.0.1,localhost"


async def test_a_proxy_that_answers_itself_without_its_credentials_shown(
    both: Simulated, home: Path
) -> None:
    refusal = reply("<h1>no</h1>", "502 Bad Gateway", content_type="text/html")
    async with other(lambda target, head: refusal) as proxy:
        value = proxy.url.replace("://", "://alice:s3cr%21t-password@")
        the = case(both.it.url, home, env={"http_proxy": value, "NO_PROXY": "10.0.0.1, corp"})
        finding = one(await found(the, "proxy"))
    assert proxy.targets == [f"{both.it.url}/"]
    assert finding.severity is Severity.ERROR
    assert "answers HTTP 502 where the gateway says 200" in finding.seen
    assert f"http_proxy={proxy.url} is set" in finding.seen
    assert "alice" not in str(finding) and "s3cr" not in str(finding)
    assert finding.fix == "export NO_PROXY=10.0.0.1,corp,127.0.0.1,localhost"


async def test_a_proxy_that_works_is_a_warning_and_gets_no_key(home: Path) -> None:
    """A forward proxy answers for the origin: here one server is both."""
    async with other(lambda target, head: reply("{}")) as server:
        the = case(server.url, home, env={"ALL_PROXY": server.url.removeprefix("http://")})
        finding = one(await found(the, "proxy"))
    assert finding.severity is Severity.WARNING
    assert "answers through it" in finding.seen and "time to first token" in finding.why
    assert not any("authorization" in head.lower() for head in server.heads)


async def test_both_spellings_of_no_proxy_are_set_right(home: Path) -> None:
    with nobody() as proxy:
        env = {"HTTP_PROXY": proxy, "no_proxy": "a", "NO_PROXY": "b"}
        finding = one(await found(case("http://gw.internal:8080", home, env=env), "proxy"))
    assert finding.fix == "export NO_PROXY=a,gw.internal no_proxy=a,gw.internal"


async def test_a_proxy_that_cannot_be_tried(both: Simulated, home: Path) -> None:
    the = case(both.it.url, home, env={"ALL_PROXY": "socks5h://127.0.0.1:1080"})
    finding = one(await found(the, "proxy"))
    assert finding.severity is Severity.WARNING and "was not tried" in finding.why


async def test_exempt_as_it_should_be(both: Simulated, home: Path) -> None:
    env = {"HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "127.0.0.1"}
    finding = one(await found(case(both.it.url, home, env=env), "proxy"))
    assert (finding.severity, finding.seen) == (
        Severity.OK,
        "HTTP_PROXY set, but not for 127.0.0.1.",
    )
