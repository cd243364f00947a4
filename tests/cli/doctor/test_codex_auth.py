"""Codex's auth.json: keys, tokens that expire, and logins an OAuth proxy does not take."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.doctor.finding import Severity
from gateway.cli.doctor.tokens import claims, expiry, granted, moment
from tests.cli.doctor.cases import NOW, Other, case, found, one, other, reply
from tests.support.running import KEY

URL = "http://127.0.0.1:1"
CONFIG = """
model = "m"
model_provider = "gw"
[model_providers.gw]
base_url = "{url}/v1"
wire_api = "responses"
requires_openai_auth = true
"""


def jwt(**claims: Any) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'RS256'})}.{part(claims)}.{part('a signature')}"


def at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def login(**changes: Any) -> dict[str, Any]:
    tokens = {
        "id_token": jwt(exp=NOW + 3600),
        "access_token": jwt(exp=NOW + 3600, scope="openid model.request"),
        "refresh_token": "rt_0123456789abcdefghij",
    }
    return {"OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": at(NOW - 60), **changes}


async def auth(
    home: Path, content: Any, *, extra: str = "", url: str = URL, **changes: Any
) -> list[Any]:
    folder = home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(CONFIG.format(url=url) + extra)
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "auth.json").write_text(text)
    findings = await found(case(url, home, **changes), "codex")
    assert not [secret for secret in (KEY, "eyJ", "rt_0123") if secret in str(findings)]
    return findings


@pytest.mark.parametrize("content", [{"OPENAI_API_KEY": KEY}, login()])
async def test_all_is_well(home: Path, content: Any) -> None:
    assert one(await auth(home, content)).severity is Severity.OK


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (None, "there is no "),
        ("{not json", "is no JSON: Expecting property name"),
        ("[]", "holds no JSON object"),
        ({}, "has neither OPENAI_API_KEY nor an access token"),
        ({"OPENAI_API_KEY": ""}, "has neither OPENAI_API_KEY nor an access token"),
        ({"OPENAI_API_KEY": None, "tokens": "x"}, "has neither"),
        ({"OPENAI_API_KEY": f"{KEY}\n"}, "there is a line break in it"),
        ({"OPENAI_API_KEY": KEY[:9]}, "it has 9 characters"),
    ],
)
async def test_no_key_in_auth_json(home: Path, content: Any, seen: str) -> None:
    finding = one(await auth(home, content))
    assert finding.severity is Severity.ERROR and seen in finding.seen
    assert finding.fix == "printenv GATEWAY_KEY | codex login --with-api-key"


async def test_a_keyring_cannot_be_looked_at(home: Path) -> None:
    folder = home / ".codex"
    folder.mkdir()
    text = 'cli_auth_credentials_store = "keyring"\n' + CONFIG.format(url=URL)
    (folder / "config.toml").write_text(text)
    finding = one(await found(case(URL, home), "codex"))
    assert finding.severity is Severity.WARNING and "keyring" in finding.seen
    assert finding.fix == "codex login status"


@pytest.mark.parametrize("name", ["access_token", "id_token"])
async def test_a_token_expired(home: Path, name: str) -> None:
    content = login()
    content["tokens"][name] = jwt(exp=NOW - 1)
    finding = one(await auth(home, content))
    assert finding.severity is Severity.ERROR
    assert f"The {name.replace('_', ' ')} in" in finding.seen
    assert "expired on 2027-01-15 07:59 UTC" in finding.seen
    assert finding.fix == "codex login"


async def test_not_refreshed_for_long(home: Path) -> None:
    finding = one(await auth(home, login(last_refresh=at(NOW - 9 * 86_400))))
    assert finding.severity is Severity.WARNING and "2027-01-06" in finding.seen
    finding = one(await auth(home, login(last_refresh="soon")))
    assert finding.severity is Severity.ERROR and "is no time" in finding.seen


async def test_nothing_to_refresh_with(home: Path) -> None:
    content = login()
    del content["tokens"]["refresh_token"]
    assert "has no refresh token" in one(await auth(home, content)).seen


async def test_a_scope_the_configuration_asks_for(home: Path) -> None:
    extra = 'scope = "openid gateway.use"\n'
    finding = one(await auth(home, login(), extra=extra))
    assert finding.severity is Severity.ERROR
    assert "lacks the scope gateway.use (the configuration asks for it)" in finding.seen
    assert "it has: model.request openid" in finding.seen


async def test_a_scope_the_proxy_asks_for(home: Path) -> None:
    challenge = 'Bearer error="insufficient_scope", scope="openid gateway.use"'
    refusal = reply("{}", "403 Forbidden", www_authenticate=challenge)
    async with other(lambda target, head: refusal) as proxy:
        finding = one(await auth(home, login(), url=proxy.url))
    assert f"lacks the scope gateway.use ({proxy.url} asks for it)" in finding.seen
    assert _sent(proxy, "/v1/models") == login()["tokens"]["access_token"]


async def test_a_token_the_proxy_refuses(home: Path) -> None:
    challenge = 'Bearer error="invalid_token", error_description="The access token expired"'
    refusal = reply("{}", "401 Unauthorized", www_authenticate=challenge)
    async with other(lambda target, head: refusal) as proxy:
        finding = one(await auth(home, login(), url=proxy.url))
    assert "answers 401 to the login's access token: The access token expired" in finding.seen
    assert finding.fix == "codex login"


async def test_the_login_goes_to_the_examined_server_alone(home: Path) -> None:
    """Another base URL in Codex's file is a finding; it does not get the token from us."""
    async with other(lambda target, head: reply("{}", "401 No")) as proxy:
        folder = home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(CONFIG.format(url=proxy.url))
        (folder / "auth.json").write_text(json.dumps(login()))
        finding = one(await found(case(URL, home), "codex"))
    assert "what was examined here is" in finding.seen
    assert proxy.targets == []


async def test_a_callback_address_that_does_not_match(home: Path) -> None:
    ours, issued = "http://localhost:1455/auth/callback", "http://127.0.0.1:1455/auth/callback"
    content = login()
    content["tokens"]["access_token"] = jwt(exp=NOW + 9, redirect_uri=issued)
    finding = one(await auth(home, {**content, "redirect_uri": ours}))
    assert finding.severity is Severity.ERROR
    assert f"is {ours} in Codex's files, and {issued} in the token" in finding.seen
    assert finding.fix == f'redirect_uri = "{issued}"'
    assert one(await auth(home, {**content, "redirect_uri": issued})).severity is Severity.OK


async def test_a_token_for_another_address(home: Path) -> None:
    content = login()
    content["tokens"]["access_token"] = jwt(exp=NOW + 9, aud=["https://api.openai.com/v1"])
    finding = one(await auth(home, content))
    assert finding.severity is Severity.WARNING
    assert "issued for api.openai.com, and base_url is at 127.0.0.1" in finding.seen


def test_what_a_token_says() -> None:
    assert expiry(jwt(exp=12)) == 12.0
    assert granted(jwt(scp=["a", "b"])) == {"a", "b"}
    assert [expiry(t) for t in ("", "a.b", "a.!!.c", jwt(exp="x"), jwt(exp=True))] == [None] * 5
    assert claims(f"a.{base64.urlsafe_b64encode(b'[1]').decode()}.c") == {}
    assert moment("2027-01-15T08:00:00Z") == moment("2027-01-15T08:00:00") == NOW
    assert moment(5) is moment("x") is None


def _sent(server: Other, target: str) -> str:
    """The last bearer token a server got for a target."""
    heads = [h for t, h in zip(server.targets, server.heads, strict=True) if t == target]
    line = next(x for x in heads[-1].splitlines() if x.lower().startswith("authorization:"))
    return line.partition("Bearer ")[2]
