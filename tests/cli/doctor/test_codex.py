"""Codex's config.toml and the key's place, as files in a home of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.cli.doctor.finding import Severity
from tests.cli.doctor.cases import about, case, found, one
from tests.support.running import KEY
from tests.support.simulated import Simulated

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOOD = """
model = "m"
model_provider = "gw"

[model_providers.gw]
name = "Gateway"
base_url = "{url}/v1"
env_key = "GW_KEY"
wire_api = "responses"
"""
URL = "http://127.0.0.1:1"
ENV = {"GW_KEY": KEY}


def write(home: Path, text: str, folder: str = ".codex") -> Path:
    path = home / folder / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


async def codex(home: Path, text: str, url: str = URL, **changes: Any) -> Any:
    """What is found of these settings; nothing but the files counts unless a gateway runs."""
    write(home, text.format(url=url))
    return await found(case(url, home, **{"env": ENV, **changes}), "codex")


async def test_all_is_well(both: Simulated, home: Path) -> None:
    finding = one(await codex(home, GOOD, both.it.url))
    assert (finding.severity, finding.fix) == (Severity.OK, "")
    assert KEY not in str(finding)


async def test_not_set_up(home: Path) -> None:
    finding = one(await found(case(URL, home), "codex"))
    assert finding.severity is Severity.OK and f"there is no {home}/.codex" in finding.seen


async def test_a_home_of_its_own(home: Path) -> None:
    path = write(home, "model = ", folder="elsewhere")
    the = case(URL, home, env={"CODEX_HOME": str(home / "elsewhere")})
    assert str(path) in one(await found(the, "codex")).seen


async def test_auth_without_config(home: Path) -> None:
    (home / ".codex").mkdir()
    finding = one(await found(case(URL, home), "codex"))
    assert finding.severity is Severity.WARNING and "no config.toml" in finding.seen
    assert finding.fix == "gateway connect codex --write"


async def test_no_toml(home: Path) -> None:
    finding = one(await codex(home, 'model = "m\n'))
    assert "is no TOML" in finding.seen and "line 1" in finding.seen


@pytest.mark.parametrize(
    ("old", "new", "seen", "fix", "severity"),
    [
        ('model = "m"\n', "", "names no model", 'model = "', "error"),
        (
            'model_provider = "gw"\n',
            "",
            "no model_provider is set",
            "gateway connect codex",
            "error",
        ),
        ('"gw"\n', '"qw"\n', "there are: gw", 'model_provider = "gw"', "error"),
        ('base_url = "{url}/v1"\n', "", "base_url is missing", 'base_url = "{url}/v1"', "error"),
        ('env_key = "GW_KEY"\n', "", "says nothing of a key", "env_key = ", "error"),
        ('wire_api = "responses"\n', "", "wire_api is missing", "wire_api = ", "warning"),
        ('"responses"', '"chat"', "wire_api in", 'wire_api = "responses"', "error"),
        ("/v1", "", "does not end with /v1", 'base_url = "{url}/v1"', "warning"),
        ("/v1", "/v1/v1", "says /v1 2 times", 'base_url = "{url}/v1"', "warning"),
        ("/v1", "/v1/responses", "ends with /responses", 'base_url = "{url}/v1"', "error"),
        ("http://127.0.0.1:1/v1", "gw.internal:80", "is no http", 'base_url = "{url}', "error"),
        ("127.0.0.1:1/", "127.0.0.1:2/", "what was examined here", 'base_url = "{url}', "warning"),
        ("http://", "https://", "says https://", 'base_url = "http://', "error"),
    ],
)
async def test_one_thing_wrong(
    home: Path, old: str, new: str, seen: str, fix: str, severity: str
) -> None:
    text = GOOD.format(url=URL)
    assert old.format(url=URL) in text
    findings = await codex(home, text.replace(old.format(url=URL), new))
    finding = about(findings, seen)
    assert finding.severity == severity
    assert finding.fix.startswith(fix.format(url=URL))
    assert finding.why


async def test_a_port_of_localhost_is_the_same_server(home: Path) -> None:
    text = GOOD.replace("{url}", "http://localhost:1")
    assert one(await codex(home, text)).severity is Severity.OK


async def test_a_model_the_gateway_does_not_serve(both: Simulated, home: Path) -> None:
    finding = one(await codex(home, GOOD.replace('"m"', '"gpt5"'), both.it.url))
    assert finding.severity is Severity.ERROR and "'gpt5'" in finding.seen
    assert finding.fix.startswith('model = "m"')


async def test_an_alias_is_served(both: Simulated, home: Path) -> None:
    finding = one(await codex(home, GOOD.replace('"m"', '"gpt-5"'), both.it.url))
    assert finding.severity is Severity.OK


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (None, "which is not set here"),
        ("", "which is empty here"),
        (f'"{KEY}"', "it has quotes around it"),
        (KEY[:10], "it has 10 characters"),
    ],
)
async def test_the_variable_of_the_key(home: Path, value: str | None, seen: str) -> None:
    finding = one(await codex(home, GOOD, env={} if value is None else {"GW_KEY": value}))
    assert finding.severity is Severity.ERROR and "GW_KEY" in finding.seen and seen in finding.seen
    assert finding.fix.startswith("export GW_KEY=KEY")
    assert KEY not in str(finding) and KEY[:10] not in str(finding)


async def test_a_key_within_the_table(home: Path) -> None:
    bearer = f'experimental_bearer_token = "Bearer {KEY}"'
    finding = one(await codex(home, GOOD.replace('env_key = "GW_KEY"', bearer)))
    assert "the word Bearer is in it" in finding.seen and KEY not in str(finding)


async def test_a_profile_counts(home: Path) -> None:
    text = 'profile = "p"\n' + GOOD + '[profiles.p]\nmodel_provider = "other"\n'
    assert "'other'" in one(await codex(home, text)).seen


async def test_codex_s_own_provider_pointed_at_the_gateway(home: Path) -> None:
    text = 'model = "m"\nopenai_base_url = "{url}"\n'
    findings = await codex(home, text)
    assert about(findings, "does not end with /v1").fix.startswith(f'openai_base_url = "{URL}/v1"')
    assert "auth.json" in about(findings, "The key should be in auth.json").seen


async def test_a_provider_of_its_own_goes_elsewhere(home: Path) -> None:
    finding = one(await codex(home, GOOD.replace('"gw"', '"ollama"')))
    assert "one of Codex's own" in finding.seen and finding.severity is Severity.WARNING


async def test_codex_as_openai_meant_it(home: Path) -> None:
    finding = one(await codex(home, 'model = "gpt-5"\n'))
    assert finding.severity is Severity.WARNING
    assert "no model_provider is set" in finding.seen


async def test_a_file_that_makes_no_sense_stops_no_other_check(home: Path) -> None:
    findings = await codex(home, "model_provider = [1]\nmodel_providers = 3\nmodel = 1\n")
    assert about(findings, "names no model").severity is Severity.ERROR
    assert about(findings, "there are: none").fix == "gateway connect codex --write"
    write(home, "")
    (home / ".codex/config.toml").write_bytes(b"\xff\xfe")
    assert "cannot be read" in one(await found(case(URL, home), "codex")).seen
