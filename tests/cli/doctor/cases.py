"""What the doctor's tests share: a case to examine, and servers that are no gateway."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import pytest

from gateway.cli.address import parse
from gateway.cli.asking import Asker
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.examination import examine
from gateway.cli.doctor.finding import Finding
from gateway.cli.masking import Mask
from tests.support.running import KEY, configuration

NOW = 1_800_000_000.0

FILE_KEY = "sk-9dXc2Lq7Vn4Rb8Tw1Zk6Mf3Hp5Js0Gy"
FILE_ADMIN_KEY = "sk-Qw4Er7Ty2Ui9Op5As1Df8Gh3Jk6Lz0X"


def case(url: str, home: Path, **changes: Any) -> Case:
    """A case with a key, an empty environment, and files under `home` alone."""
    given: dict[str, Any] = {
        "address": parse(url),
        "given_key": KEY,
        "env": {},
        "home": home,
        "folder": home / "project",
        "ask": Asker(2.0),
        "now": lambda: NOW,
        **changes,
    }
    mask = Mask((given["given_key"], given.get("given_admin_key", "")))
    mask.learn(given["env"])
    return Case(mask=mask, **given)


def gateway_yaml(tmp_path: Path, *urls: str, **changes: Any) -> Path:
    """A configuration file as `configuration` has it, with keys strong enough to be loaded."""
    path = tmp_path / "gateway.yaml"
    keys = {"keys": [{"name": "dev", "key": FILE_KEY}], "admin": {"key": FILE_ADMIN_KEY}}
    path.write_text(json.dumps(configuration(tmp_path, *urls, **(keys | changes))))
    return path


async def found(case: Case, *topics: str) -> list[Finding]:
    """What the topics find; in a thread, since the servers are on this one's event loop."""

    def run() -> list[Finding]:
        return [finding for _, findings in examine(case, topics) for finding in findings]

    return await asyncio.to_thread(run)


def one(findings: list[Finding]) -> Finding:
    """The only finding."""
    assert len(findings) == 1, findings
    return findings[0]


def about(findings: list[Finding], *words: str) -> Finding:
    """The only one whose first sentence holds these words."""
    return one([f for f in findings if all(word in f.seen for word in words)])


@dataclass
class Other:
    """A server that is no gateway, with the requests it got: targets, and raw heads."""

    url: str
    targets: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


Answer = Callable[[str, str], bytes]


def reply(body: bytes | str, status: str = "200 OK", **headers: str) -> bytes:
    """A whole reply; names of headers with `_` for `-`."""
    raw = body.encode() if isinstance(body, str) else body
    given = {"content_type": "application/json", **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    head = f"HTTP/1.1 {status}\r\n{lines}content-length: {len(raw)}\r\nconnection: close\r\n\r\n"
    return head.encode() + raw


NOT_FOUND = reply("<h1>Not Found</h1>", "404 Not Found", content_type="text/html", server="nginx")


HANGING = b"an answer that does not come"


@asynccontextmanager
async def other(
    answers: Mapping[str, bytes] | Answer, tls: SSLContext | None = None
) -> AsyncIterator[Other]:
    """A server that answers by target (404 elsewhere), or by target and head."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            target = head.split(" ")[1]
            length = [x for x in head.lower().splitlines() if x.startswith("content-length:")]
            body = await reader.readexactly(int(length[0].split(":")[1])) if length else b""
            server.targets.append(target)
            server.heads.append(head)
            server.bodies.append(body)
            known = answers(target, head) if callable(answers) else answers.get(target, NOT_FOUND)
            if known is HANGING:
                await over.wait()
            writer.write(known)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()

    over = asyncio.Event()
    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    scheme = "https" if tls else "http"
    server = Other(f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    try:
        yield server
    finally:
        over.set()
        listening.close()


def certificate(folder: Path) -> SSLContext:
    """A server's context with a certificate nobody trusts, made by openssl."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context
