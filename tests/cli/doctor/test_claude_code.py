"""Claude Code's settings.json files, over the environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.doctor.finding import Finding, Severity
from tests.cli.doctor.cases import case, found, one
from tests.support.running import KEY
from tests.support.simulated import Simulated

pytestmark = pytest.mark.asyncio(loop_scope="module")

URL = "http://127.0.0.1:1"
GOOD = {
    "ANTHROPIC_BASE_URL": URL,
    "ANTHROPIC_AUTH_TOKEN": KEY,
    "ANTHROPIC_MODEL": "m",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL": "m",
}


def write(home: Path, content: Any, name: str = ".claude/settings.json") -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


async def claude(home: Path, url: str = URL, **changes: Any) -> list[Finding]:
    findings = await found(case(url, home, **changes), "claude-code")
    assert KEY not in str(findings)
    return findings


async def test_all_is_well(both: Simulated, home: Path) -> None:
    write(home, {"env": {**GOOD, "ANTHROPIC_BASE_URL": both.it.url}})
    finding = one(await claude(home, both.it.url))
    assert (finding.severity, finding.seen) == (
        Severity.OK,
        "Claude Code has base URL, key and model.",
    )


async def test_not_set_up(home: Path) -> None:
    finding = one(await claude(home))
    assert finding.severity is Severity.OK and f"no {home}/.claude/settings.json" in finding.seen


@pytest.mark.parametrize(
    ("env", "seen", "fix", "severity"),
    [
        ({"ANTHROPIC_BASE_URL": f"{URL}/v1"}, "ends with /v1", f'"{URL}"', "warning"),
        ({"ANTHROPIC_BASE_URL": f"{URL}/v1/messages"}, "ends with /messages", URL, "error"),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:2"}, "examined here", URL, "warning"),
        ({"ANTHROPIC_BASE_URL": ""}, "ANTHROPIC_BASE_URL is not set", URL, "error"),
        ({"ANTHROPIC_API_KEY": KEY}, "Both ", '"ANTHROPIC_API_KEY": ""', "warning"),
        ({"ANTHROPIC_AUTH_TOKEN": ""}, "is empty", '"ANTHROPIC_AUTH_TOKEN": "KEY"', "error"),
        ({"ANTHROPIC_AUTH_TOKEN": f"Bearer {KEY}"}, "the word Bearer", "KEY", "error"),
        ({"ANTHROPIC_MODEL": ""}, "ANTHROPIC_MODEL is not set", "ANTHROPIC_MODEL", "warning"),
        ({"ANTHROPIC_DEFAULT_HAIKU_MODEL": ""}, "HAIKU_MODEL is not set", "HAIKU", "warning"),
    ],
)
async def test_one_thing_wrong(
    home: Path, env: dict[str, str], seen: str, fix: str, severity: str
) -> None:
    path = write(home, {"env": {**GOOD, **env}})
    finding = one(await claude(home))
    assert seen in finding.seen and finding.severity == severity
    assert fix in finding.fix and str(path) in finding.fix
    assert finding.why


async def test_models_the_gateway_does_and_does_not_serve(both: Simulated, home: Path) -> None:
    env = {
        **GOOD,
        "ANTHROPIC_BASE_URL": both.it.url,
        "ANTHROPIC_MODEL": "opus",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "claude-haiku-4-5",
    }
    write(home, {"env": env})
    finding = one(await claude(home, both.it.url))
    assert finding.seen.startswith("ANTHROPIC_MODEL is 'opus'") and "Ids: m" in finding.why


async def test_an_alias_for_anthropics_names_needs_no_model(both: Simulated, home: Path) -> None:
    env = {"ANTHROPIC_BASE_URL": both.it.url, "ANTHROPIC_AUTH_TOKEN": KEY}
    write(home, {"env": env})
    assert one(await claude(home, both.it.url)).severity is Severity.OK


async def test_the_file_wins_over_the_environment_and_the_project_over_both(home: Path) -> None:
    env = {**GOOD, "ANTHROPIC_BASE_URL": f"{URL}/v1"}
    finding = one(await claude(home, env=env))
    assert "ANTHROPIC_BASE_URL in the environment ends with /v1" in finding.seen
    assert finding.fix == f"export ANTHROPIC_BASE_URL={URL}"
    write(home, {"env": GOOD})
    assert one(await claude(home, env=env)).severity is Severity.OK
    local = write(
        home,
        {"env": {"ANTHROPIC_BASE_URL": f"{URL}/v1/messages"}},
        "project/.claude/settings.local.json",
    )
    assert str(local) in one(await claude(home, env=env)).seen


async def test_two_credentials_from_two_places(home: Path) -> None:
    write(home, {"env": GOOD})
    finding = one(await claude(home, env={"ANTHROPIC_API_KEY": KEY}))
    assert "ANTHROPIC_API_KEY in the environment are set" in finding.seen
    assert finding.fix == "unset ANTHROPIC_API_KEY"


async def test_a_helper_for_the_key_and_a_model_outside_env(home: Path) -> None:
    env = {k: v for k, v in GOOD.items() if k not in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL")}
    write(home, {"env": env, "apiKeyHelper": "~/key.sh", "model": "m"})
    assert one(await claude(home)).severity is Severity.OK


async def test_a_directory_of_its_own(home: Path) -> None:
    write(home, "{", "elsewhere/settings.json")
    finding = one(await claude(home, env={"CLAUDE_CONFIG_DIR": str(home / "elsewhere")}))
    assert "elsewhere/settings.json is no JSON" in finding.seen and "line 1" in finding.seen


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ("{,}", "is no JSON"),
        ("[]", "holds no object"),
        ({"env": ["x"]}, "holds no object, or no object under env"),
        ({"env": {"API_TIMEOUT_MS": 600000}}, "API_TIMEOUT_MS under env"),
    ],
)
async def test_a_file_it_does_not_take(home: Path, content: Any, seen: str) -> None:
    write(home, content)
    finding = one(await claude(home))
    assert finding.severity is Severity.ERROR and seen in finding.seen


async def test_a_key_in_the_place_of_the_base_url_is_not_shown(home: Path) -> None:
    secret = "R4nd0mW0rdsWithoutPrefix"
    write(home, {"env": {**GOOD, "ANTHROPIC_BASE_URL": secret}})
    finding = one(await claude(home))
    assert "is no http(s)://HOST:PORT: R4nd… (24 characters)" in finding.seen
    assert secret not in str(finding)


async def test_settings_without_the_gateway(home: Path) -> None:
    write(home, {"permissions": {}})
    finding = one(await claude(home))
    assert finding.severity is Severity.WARNING and "ANTHROPIC_BASE_URL is not set" in finding.seen
    assert finding.fix == "gateway connect claude-code --write"
