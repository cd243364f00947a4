"""Each way of not being reached, on a real socket."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gateway.cli.doctor.finding import Severity
from tests.cli.doctor.cases import case, certificate, found, gateway_yaml, one, other, reply
from tests.support.ports import deaf, nobody, rude
from tests.support.simulated import Simulated

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_gateway_answers(both: Simulated, home: Path) -> None:
    finding = one(await found(case(both.it.url, home), "reachability"))
    assert (finding.severity, finding.fix) == (Severity.OK, "")


async def test_nothing_listens(home: Path) -> None:
    with nobody() as url:
        finding = one(await found(case(url, home), "reachability"))
    assert finding.severity is Severity.ERROR
    assert finding.seen.startswith("Connection refused: nothing listens on port")
    assert finding.fix == "gateway serve -c gateway.yaml"
    assert "container" in finding.why


async def test_the_configuration_has_another_port(home: Path, tmp_path: Path) -> None:
    file = gateway_yaml(tmp_path, "http://127.0.0.1:1", server={"port": 8123})
    with nobody() as url:
        finding = one(await found(case(url, home, config=file), "reachability"))
    assert finding.fix == "export GATEWAY_URL=http://127.0.0.1:8123"


async def test_a_name_without_an_address(home: Path) -> None:
    finding = one(await found(case("http://nowhere.invalid:8080", home), "reachability"))
    assert finding.severity is Severity.ERROR
    assert "nowhere.invalid has no address" in finding.seen
    assert finding.fix == "getent hosts nowhere.invalid"


async def test_a_port_that_neither_accepts_nor_refuses(home: Path) -> None:
    with deaf() as url:
        the = case(url, home)
        the.ask.timeout = 0.3
        finding = one(await found(the, "reachability"))
    assert "neither accepts nor refuses within 0.3 s" in finding.seen
    assert "firewall" in finding.why


async def test_a_server_that_says_nothing(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        the = case(f"http://127.0.0.1:{listener.getsockname()[1]}", home)
        the.ask.timeout = 0.3
        finding = one(await found(the, "reachability"))
    assert "accepts connections, but says nothing within 0.3 s" in finding.seen


# Python 3.11 drops a socket unclosed that is reset between connect and TLS handshake.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("reset", [False, True])
async def test_a_port_forwarder_without_its_target(home: Path, reset: bool) -> None:
    async with rude(reset=reset) as url:
        finding = one(await found(case(url, home), "reachability"))
    assert "does not speak HTTP" in finding.seen
    assert "port forwarder" in finding.why


async def test_another_protocol(home: Path) -> None:
    async with other(lambda target, head: b"SSH-2.0-OpenSSH_9.6\r\n") as server:
        the = case(server.url, home)
        the.ask.timeout = 1.0
        finding = one(await found(the, "reachability"))
    assert "does not speak HTTP" in finding.seen


async def test_tls_to_a_plain_port(both: Simulated, home: Path) -> None:
    url = both.it.url.replace("http:", "https:")
    finding = one(await found(case(url, home), "reachability"))
    assert finding.severity is Severity.ERROR
    assert "speaks plain HTTP, not TLS" in finding.seen
    assert finding.fix == f"export GATEWAY_URL={both.it.url}"


@pytest.mark.service
async def test_plain_http_to_a_tls_port(home: Path, tmp_path: Path) -> None:
    async with other({"/": reply("{}")}, certificate(tmp_path)) as server:
        url = server.url.replace("https:", "http:")
        finding = one(await found(case(url, home), "reachability"))
    assert "speaks TLS, and was given as http://" in finding.seen
    assert finding.fix == f"export GATEWAY_URL={server.url}"


@pytest.mark.service
async def test_a_certificate_of_nobody_known(home: Path, tmp_path: Path) -> None:
    async with other({"/": reply("{}")}, certificate(tmp_path)) as server:
        finding = one(await found(case(server.url, home), "reachability"))
    assert "not trusted: self-signed certificate" in finding.seen
    assert "SSL_CERT_FILE" in finding.fix


@pytest.mark.parametrize("topic", ["base-url", "credentials", "reply"])
async def test_what_needs_an_answer_says_that_there_is_none(home: Path, topic: str) -> None:
    with nobody() as url:
        alone = one(await found(case(url, home), topic))
        with_the_cause = await found(case(url, home), "reachability", topic)
    assert (alone.severity, alone.topic) == (Severity.ERROR, topic)
    assert "Not checked" in alone.seen and "connection refused" in alone.seen
    assert alone.fix == f"gateway doctor --only reachability --url {url}"
    assert [f.severity for f in with_the_cause] == [Severity.ERROR, Severity.WARNING]
