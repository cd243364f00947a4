"""401 and 403: whose fault, and what sets it right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli.answering import SERVICE
from gateway.cli.doctor.finding import Severity
from tests.cli.doctor.cases import (
    FILE_ADMIN_KEY,
    FILE_KEY,
    about,
    case,
    found,
    gateway_yaml,
    one,
    other,
    reply,
)
from tests.support.running import ADMIN_KEY, KEY
from tests.support.simulated import Simulated, simulated

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRONG = "sk-WrongWrong0123456789XyZ"


async def test_a_good_key_and_its_models(both: Simulated, home: Path) -> None:
    finding = one(await found(case(both.it.url, home), "credentials"))
    assert finding.severity is Severity.OK
    assert "The key sk-t… (30 characters) of --key or GATEWAY_KEY is known; it may use m" in (
        finding.seen
    )


async def test_an_engine_that_asks_for_no_key_knows_none(both: Simulated, home: Path) -> None:
    finding = one(await found(case(both.engine.url, home), "credentials"))
    assert finding.severity is Severity.WARNING
    assert "without a key, too" in finding.seen
    assert finding.fix == "gateway doctor --only base-url"


@pytest.mark.parametrize(
    ("env", "seen"),
    [({}, "No key was given."), ({"GATEWAY_KEY": ""}, "GATEWAY_KEY is set, but empty.")],
)
async def test_no_key(both: Simulated, home: Path, env: dict[str, str], seen: str) -> None:
    finding = one(await found(case(both.it.url, home, given_key="", env=env), "credentials"))
    assert (finding.severity, finding.seen) == (Severity.ERROR, seen)
    assert finding.fix.startswith("export GATEWAY_KEY=")


@pytest.mark.parametrize(
    ("key", "flaw"),
    [
        (f'"{KEY}"', "it has quotes around it"),
        (f"{KEY}\n", "there is a line break in it"),
        (f" {KEY}", "there are blanks around it"),
        (f"Bearer {KEY}", "the word Bearer is in it"),
    ],
)
async def test_a_key_with_something_copied_along(
    both: Simulated, home: Path, key: str, flaw: str
) -> None:
    """The doctor finds out that what is left is right, and still does not print it."""
    findings = await found(case(both.it.url, home, given_key=key), "credentials")
    finding = about(findings, flaw)
    assert finding.severity is Severity.ERROR
    assert "what is left without that is a key" in finding.fix
    assert KEY not in str(findings) and KEY[4:12] not in str(findings)


@pytest.mark.parametrize(
    ("key", "flaw"),
    [
        (KEY[:12], "it has 12 characters, and a key of the gateway at least 22"),
        ("${GATEWAY_KEY}", "it is a placeholder"),
        ("sk-tes...jkl", "it is a placeholder, or was shortened"),
        ("sk-test-0123456789 abcdefghijkl", "there are blanks in it"),
        ("schlüssel-0123456789abcdefghijk", "it has characters that no header can hold"),
    ],
)
async def test_a_key_that_is_not_whole(both: Simulated, home: Path, key: str, flaw: str) -> None:
    findings = await found(case(both.it.url, home, given_key=key), "credentials")
    assert about(findings, flaw).severity is Severity.ERROR
    assert about(findings, flaw).fix.startswith("export GATEWAY_KEY=KEY")


async def test_a_key_of_another_server(both: Simulated, home: Path) -> None:
    finding = one(await found(case(both.it.url, home, given_key=WRONG), "credentials"))
    assert finding.severity is Severity.ERROR
    assert finding.seen.startswith("401: the key sk-W… (26 characters)")
    assert WRONG not in str(finding)


async def test_the_admin_key_for_a_clients(both: Simulated, home: Path) -> None:
    the = case(both.it.url, home, given_key=ADMIN_KEY, given_admin_key=ADMIN_KEY)
    assert "It is the admin key" in one(await found(the, "credentials")).seen


async def test_something_between_takes_the_authorization_header(home: Path) -> None:
    listing = reply('{"data":[{"id":"m"}]}')
    refused = reply("{}", "401 Unauthorized")
    async with other(lambda t, head: listing if "x-api-key" in head.lower() else refused) as it:
        finding = one(await found(case(it.url, home), "credentials"))
    assert "x-api-key is accepted" in finding.seen
    assert "proxy_set_header Authorization" in finding.fix


async def test_a_firewall_before_the_gateway(home: Path) -> None:
    body = json.dumps({"error": {"message": "blocked by policy"}})
    async with other(lambda target, head: reply(body, "403 Forbidden")) as server:
        finding = one(await found(case(server.url, home), "credentials"))
    assert finding.seen == "403 for the list of models: blocked by policy."
    assert "OAuth proxy" in finding.why


async def test_the_key_of_the_file_where_none_was_given(
    both: Simulated, home: Path, tmp_path: Path
) -> None:
    """The gateway that runs does not know the file's key: it has another configuration."""
    file = gateway_yaml(tmp_path, both.engine.url)
    findings = await found(case(both.it.url, home, given_key="", config=file), "credentials")
    finding = one(findings)
    assert f"sk-9… (34 characters) of key dev of {file}" in finding.seen
    assert finding.fix == "gateway reload"
    assert FILE_KEY not in str(findings) and FILE_ADMIN_KEY not in str(findings)


async def test_the_keys_of_the_file_go_to_a_gateway_alone(home: Path, tmp_path: Path) -> None:
    async with other(lambda target, head: reply('{"service":"another"}')) as server:
        file = gateway_yaml(tmp_path, server.url)
        await found(case(server.url, home, given_key="", config=file))
    assert "/v1/models" in server.targets
    assert not [head for head in server.heads if "authorization" in head.lower()]


async def test_the_keys_of_a_file_that_nobody_named_are_for_the_gateway_it_configures(
    home: Path, tmp_path: Path
) -> None:
    """Anybody can call himself a gateway."""
    async with other(lambda target, head: reply(json.dumps({"service": SERVICE}))) as server:
        port = int(server.url.rpartition(":")[2])
        for configured, sent in ((port, True), (1, False)):
            server.heads.clear()
            file = gateway_yaml(tmp_path, server.url, server={"port": configured})
            await found(case(server.url, home, given_key="", config=file, named=False))
            assert any(FILE_KEY in head for head in server.heads) is sent
            assert any(FILE_ADMIN_KEY in head for head in server.heads) is sent


async def test_models_known_and_unknown(both: Simulated, home: Path) -> None:
    wrong = await found(case(both.it.url, home, given_model="llama"), "credentials")
    listed = await found(case(both.it.url, home, given_model="m"), "credentials")
    alias = await found(case(both.it.url, home, given_model="claude-sonnet-4-5"), "credentials")
    assert about(wrong, "Model llama is unknown here").fix == "export GATEWAY_MODEL=m"
    assert about(listed, "Model m is served.").severity is Severity.OK
    assert about(alias, "Model claude-sonnet-4-5 is served.").severity is Severity.OK


async def test_a_key_that_may_use_nothing(home: Path, tmp_path: Path) -> None:
    keys = [{"name": "dev", "key": KEY, "models": ["other"]}]
    async with simulated(tmp_path, keys=keys) as both:
        finding = one(await found(case(both.it.url, home), "credentials"))
    assert "is known, and may use no model" in finding.seen
    assert finding.fix.startswith('models: ["*"]')
