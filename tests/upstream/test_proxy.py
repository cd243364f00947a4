"""A backend's own `proxy`: everything that goes there goes by it, and nothing else does."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from gateway.errors import BackendFailed
from gateway.routing.health import HttpProbe
from gateway.routing.table import Table
from gateway.settings import Settings
from gateway.upstream.clients import Clients
from gateway.upstream.pool import Pool
from gateway.upstream.proxy import Proxy
from tests.cli.doctor.cases import certificate, other
from tests.cli.doctor.cases import reply as page
from tests.simulator.running import serving
from tests.support.forward_proxy import FakeForwardProxy, forward_proxy
from tests.support.ports import nobody
from tests.support.running import Running, configuration, running
from tests.support.scripted import reply, scripted
from tests.support.site import says, until
from tests.upstream.asking import ask

PASSWORD = "pr0xy-pa55word"
CHAT: dict[str, Any] = {
    "model": "m",
    "max_tokens": 4,
    "messages": [{"role": "user", "content": "hi"}],
}


def by(proxy: str, tmp_path: Path, *urls: str) -> dict[str, Any]:
    """Every backend is reached by this proxy."""
    settings = configuration(tmp_path, *urls)
    for backend in settings["backends"].values():
        backend["proxy"] = proxy
    return settings


async def known(it: Running) -> None:
    """Wait until a probe has succeeded and the engine has told its facts."""
    await until(lambda: it.gateway.context.table.backends["b0"].facts)


async def test_requests_streams_probes_and_facts_go_by_it(tmp_path: Path) -> None:
    async with (
        forward_proxy(PASSWORD) as proxy,
        serving() as engine,
        running(by(proxy.url, tmp_path, engine.url), tmp_path) as it,
    ):
        await known(it)
        whole = await it.client.post("/v1/chat/completions", json=CHAT)
        stream = await it.client.post("/v1/chat/completions", json={**CHAT, "stream": True})
    assert whole.status_code == 200 and whole.json()["choices"]
    assert stream.text.endswith("data: [DONE]\n\n") and stream.text.count("data: ") > 4
    paths = proxy.paths()
    assert paths.count("/v1/chat/completions") == 2
    assert {"/health", "/v1/models", "/version", "/metrics"} <= set(paths)
    assert len(paths) == len(proxy.lines), "http goes in absolute form, not through tunnels"


async def test_a_stream_comes_through_it_as_it_is_generated(tmp_path: Path) -> None:
    body = {**CHAT, "stream": True, "max_tokens": 12}
    async with (
        forward_proxy() as proxy,
        serving(speed=1.0) as engine,
        running(by(proxy.url, tmp_path, engine.url), tmp_path) as it,
        it.client.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        reads = [chunk async for chunk in answer.aiter_raw()]
    assert len(reads) >= 6


async def test_a_backend_without_one_is_reached_directly(tmp_path: Path) -> None:
    async with forward_proxy() as proxy, serving() as engine, serving() as other:
        settings = configuration(tmp_path, engine.url, other.url)
        settings["backends"]["b1"]["proxy"] = proxy.url
        async with running(settings, tmp_path) as it:
            for arm in ("a0", "a1", "a0"):
                body = {**CHAT, "model": f"m@{arm}"}
                assert (await it.client.post("/v1/chat/completions", json=body)).is_success
            await until(lambda: "/version" in proxy.paths())
    hosts = {line.split("/")[2] for line in proxy.lines}
    assert hosts == {other.url.removeprefix("http://")}
    assert proxy.paths().count("/v1/chat/completions") == 1


async def test_https_goes_through_a_tunnel_whose_connection_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy sees a name and a port; the reply to its credentials stays outside of TLS."""
    tls = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    heads: list[str] = []
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                await reader.readexactly(2)
                writer.write(reply(b"inside"))
        writer.close()
        left.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    async with forward_proxy(PASSWORD) as proxy:
        pool = pool_by(proxy.url, f"https://127.0.0.1:{port}")
        for _ in range(3):
            assert (await ask(pool)).reads == [b"inside"]
        assert pool.opened == 1
        pool.close()
        await asyncio.wait_for(left.wait(), 5)
    server.close()
    assert proxy.lines == [f"CONNECT 127.0.0.1:{port}"]
    assert "proxy-authorization" in proxy.heads[0].lower()
    assert "proxy-authorization" not in "".join(heads).lower()


async def test_probes_of_an_https_backend_go_through_a_tunnel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And trust the authorities that requests trust: a backend would never be up otherwise."""
    tls = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    async with forward_proxy(PASSWORD) as proxy, other({"/health": page("")}, tls) as engine:
        settings = Settings.model_validate(by(proxy.url, tmp_path, engine.url))
        backend = Table(settings, lambda: 0.0).backends["b0"]
        async with aclosing(Clients()) as clients:
            assert await HttpProbe(clients)(backend), backend.trouble
    assert proxy.lines == [f"CONNECT {engine.url.removeprefix('https://')}"]
    assert engine.targets == ["/health"]


def pool_by(proxy: str, url: str, connect_timeout: float = 2.0) -> Pool:
    return Pool(url, connect_timeout=connect_timeout, proxy=SecretStr(proxy))


async def fault(pool: Pool) -> str:
    with pytest.raises(BackendFailed) as caught:
        await ask(pool)
    assert PASSWORD not in f"{caught.value} {caught.value.message}"
    return caught.value.detail or ""


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_dead_proxy_is_named_without_its_password(scheme: str) -> None:
    with nobody() as gone:
        host = gone.removeprefix("http://")
        detail = await fault(pool_by(f"http://u:{PASSWORD}@{host}", f"{scheme}://127.0.0.1:9"))
    assert detail.startswith(f"cannot connect by proxy {host}: ")
    assert PASSWORD not in detail


async def test_a_tunnel_that_is_refused_says_what_the_proxy_said() -> None:
    async with forward_proxy(PASSWORD) as proxy:
        wrong = proxy.url.replace(PASSWORD, "wrong")
        told = await fault(pool_by(wrong, "https://127.0.0.1:9"))
        gone = await fault(pool_by(proxy.url, "https://127.0.0.1:9"))
    where = f"proxy 127.0.0.1:{proxy.port} refused the tunnel: HTTP"
    assert told == f"{where} 407 Proxy Authentication Required"
    assert gone == f"{where} 502 Bad Gateway"


@pytest.mark.parametrize(
    ("says_what", "detail"),
    [
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "speaks no HTTP"),
        (b"", "it closed the connection"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 20_000, "it closed the connection"),
        (b"HTTP/1.1 200 OK\r\n\r\nno TLS at all", "cannot connect by proxy"),
        (b"HTTP/1.1 200 OK\r\n\r\n", ": ConnectionResetError"),
    ],
    ids=["no HTTP", "nothing", "an endless head", "no TLS behind it", "no backend behind it"],
)
async def test_what_is_no_proxy(says_what: bytes, detail: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(says_what)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert detail in await fault(pool_by(url, "https://127.0.0.1:9"))


async def test_a_proxy_that_says_nothing_is_given_up_in_time() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        detail = await fault(pool_by(f"http://{host}", "https://127.0.0.1:9", 0.1))
    assert detail == f"no connection by proxy {host} within 0.1 s"


async def test_what_the_gateway_says_of_a_dead_proxy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The client learns no address, the log and the access log do, and nobody the password."""
    with nobody() as gone:
        proxy = gone.replace("http://", f"http://u:{PASSWORD}@")
        async with running(by(proxy, tmp_path, "http://127.0.0.1:9"), tmp_path) as it:
            answer = await it.client.post("/v1/chat/completions", json=CHAT)
            record = await it.record()
            backend = it.gateway.context.table.backends["b0"]
            await until(lambda: not backend.up, within=10)
            metrics = (await it.client.get("/metrics")).text
    host = gone.removeprefix("http://")
    assert answer.status_code >= 500 and host not in answer.text
    assert f"cannot connect by proxy {host}" in record.detail
    assert "backend b0 is down (no answer by its proxy: " in caplog.text
    everything = caplog.text + metrics + answer.text + (tmp_path / "access.jsonl").read_text()
    assert PASSWORD not in everything + json.dumps(record.detail)


async def test_wrong_credentials_of_an_http_backend(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with forward_proxy(PASSWORD) as proxy, scripted(says(reply(b"{}"))) as backend:
        wrong = proxy.url.replace(PASSWORD, "wrong")
        async with running(by(wrong, tmp_path, backend.url), tmp_path) as it:
            answer = await it.client.post("/v1/chat/completions", json=CHAT)
            record = await it.record()
    assert answer.status_code == 502 and "tell the operator" in answer.text
    assert "HTTP 407" in record.detail
    assert backend.requests == []


async def test_another_proxy_takes_over_at_a_reload(tmp_path: Path) -> None:
    async with (
        forward_proxy() as one,
        forward_proxy() as two,
        serving() as engine,
        running(by(one.url, tmp_path, engine.url), tmp_path) as it,
    ):
        for proxy in (one, two):
            settings = it.gateway.context.settings
            changed = settings.model_copy(update={"backends": _by(settings.backends, proxy)})
            await it.gateway.reload(changed)
            assert (await it.client.post("/v1/chat/completions", json=CHAT)).is_success
    asked = [proxy.paths().count("/v1/chat/completions") for proxy in (one, two)]
    assert asked == [1, 1]


def _by(backends: Any, proxy: FakeForwardProxy) -> Any:
    secret = SecretStr(proxy.url)
    return {name: one.model_copy(update={"proxy": secret}) for name, one in backends.items()}


@pytest.mark.parametrize(
    ("url", "host", "port", "line"),
    [
        ("http://p:3128", "p", 3128, b""),
        ("http://p/", "p", 80, b""),
        ("http://[::1]:1", "::1", 1, b""),
        ("http://u:p%40ss@p", "p", 80, b"proxy-authorization: Basic dTpwQHNz\r\n"),
        ("http://u@p", "p", 80, b"proxy-authorization: Basic dTo=\r\n"),
    ],
)
def test_a_proxys_address(url: str, host: str, port: int, line: bytes) -> None:
    proxy = Proxy.of(url)
    assert (proxy.host, proxy.port, proxy.authorization) == (host, port, line)
    assert "dT" not in repr(proxy) and "ss" not in str(proxy)


def test_nothing_is_added_for_a_backend_without_one() -> None:
    plain = Pool("http://h:1/p", connect_timeout=1)
    assert (plain.target, plain.host_lines) == (b"/p", b"host: h:1\r\n")
    proxied = pool_by("http://u:x@p", "http://h:1/p")
    assert proxied.target == b"http://h:1/p"
    assert proxied.host_lines.startswith(b"host: h:1\r\nproxy-authorization: Basic ")
    tunnelled = pool_by("http://u:x@p", "https://h:1/p")
    assert (tunnelled.target, tunnelled.host_lines) == (b"/p", b"host: h:1\r\n")
