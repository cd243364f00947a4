"""Who answers, and under which path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli.answering import SERVICE
from gateway.cli.doctor.finding import Severity
from gateway.keys.keyring import NO_CREDENTIAL
from tests.cli.doctor.cases import about, case, found, gateway_yaml, one, other, reply
from tests.support.simulated import Simulated

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/api", "/api/v1", "/anthropic"])
async def test_the_gateway_under_a_path_it_knows(both: Simulated, home: Path, path: str) -> None:
    findings = await found(case(both.it.url + path, home), "base-url")
    root = both.it.url + path.removesuffix("/").removesuffix("/v1")
    assert [f.severity for f in findings] == [Severity.OK] * 2
    assert f"{root} is a TTFT Gateway" in findings[0].seen
    assert f"OpenAI SDKs and Codex: {root}/v1; Claude Code: {root}." in findings[1].seen


async def test_a_gateway_that_stands_under_a_path_alone(home: Path) -> None:
    """What serves it there has another site elsewhere, which is nobody's business."""
    front = reply(json.dumps({"service": SERVICE, "version": "1.0"}))
    async with other({"/api/": front}) as server:
        findings = await found(case(f"{server.url}/api/v1", home), "base-url")
    assert server.targets == ["/api/"]
    assert findings[1].seen.startswith(f"Base URLs for OpenAI SDKs and Codex: {server.url}/api/v1;")


async def test_v1_twice(both: Simulated, home: Path) -> None:
    findings = await found(case(f"{both.it.url}/v1/v1", home), "base-url")
    finding = about(findings, "/v1 2 times")
    assert finding.severity is Severity.WARNING and "404" in finding.why
    assert finding.fix == f"export OPENAI_BASE_URL={both.it.url}/v1"


async def test_a_whole_route_for_a_base(both: Simulated, home: Path) -> None:
    findings = await found(case(f"{both.it.url}/v1/chat/completions", home), "base-url")
    finding = about(findings, "ends with /chat/completions")
    assert finding.severity is Severity.ERROR
    assert finding.fix == f"export OPENAI_BASE_URL={both.it.url}/v1"


async def test_a_path_the_gateway_does_not_have(both: Simulated, home: Path) -> None:
    finding = one(await found(case(f"{both.it.url}/openapi/v1", home), "base-url"))
    assert finding.severity is Severity.ERROR and "nothing under this path" in finding.seen
    assert finding.fix == f"export OPENAI_BASE_URL={both.it.url}/v1"


async def test_a_backend_instead_of_the_gateway(
    both: Simulated, home: Path, tmp_path: Path
) -> None:
    file = gateway_yaml(tmp_path, both.engine.url, server={"port": 8123})
    finding = one(await found(case(both.engine.url, home), "base-url"))
    named = one(await found(case(f"{both.engine.url}/v1", home, config=file), "base-url"))
    assert finding.severity is Severity.ERROR
    assert f"{both.engine.url} is a vLLM server itself, not the gateway" in finding.seen
    assert "vLLM server, backend b0, itself" in named.seen
    assert named.fix == "export GATEWAY_URL=http://127.0.0.1:8123"


async def test_a_backend_with_a_key_of_its_own(home: Path) -> None:
    unauthorized = reply('{"error":"Unauthorized"}', "401 Unauthorized")
    answers = {"/v1/models": unauthorized, "/version": reply('{"version":"0.32.0"}')}
    async with other(answers) as server:
        finding = one(await found(case(server.url, home), "base-url"))
    assert "is a vLLM server itself" in finding.seen


async def test_another_server(home: Path) -> None:
    async with other({}) as server:
        finding = one(await found(case(server.url, home), "base-url"))
    assert finding.severity is Severity.ERROR
    assert "is no TTFT Gateway: it answers HTTP 404, text/html, server nginx" in finding.seen
    assert not any("authorization" in head.lower() for head in server.heads)


async def test_openais_request_ids_look_like_the_gateways(home: Path) -> None:
    body = '{"error":{"message":"Invalid URL","code":null}}'
    async with other(lambda t, h: reply(body, "404 Not Found", x_request_id="req_1")) as server:
        finding = one(await found(case(server.url, home), "base-url"))
    assert "is no TTFT Gateway" in finding.seen


async def test_the_gateway_behind_someone_elses_front_page(home: Path) -> None:
    body = json.dumps({"error": {"message": NO_CREDENTIAL}})
    async with other({"/v1/models": reply(body, "401 Unauthorized")}) as server:
        finding = one(await found(case(server.url, home), "base-url"))
    assert finding.severity is Severity.OK and "though not at" in finding.seen


async def test_a_redirect_to_https(home: Path) -> None:
    answer = reply("", "301 Moved Permanently", location="https://127.0.0.1/v1/?state=hidden")
    async with other(lambda target, head: answer) as server:
        finding = one(await found(case(server.url, home), "base-url"))
    assert "HTTP 301 and points to https://127.0.0.1/v1." in finding.seen
    assert "unencrypted" in finding.why
    assert finding.fix == "export GATEWAY_URL=https://127.0.0.1"
