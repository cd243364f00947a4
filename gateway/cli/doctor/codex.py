"""Codex: base URL, model and provider in config.toml, the key in the environment or auth.json."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway.cli.connect.userfiles import Home
from gateway.cli.doctor import client_url, codex_auth, codex_oauth
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Severity, Topic
from gateway.cli.key_form import flaws
from gateway.clients.codex import CONFIG

TOPIC = Topic("codex")

BUILT_IN = frozenset({"openai", "ollama", "lmstudio", "amazon-bedrock"})
"""Providers Codex knows without a table; a table of such a name is not looked at."""


_CONNECT = "gateway connect codex --write"


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider Codex would use: its name and its table in config.toml."""

    name: str
    table: Mapping[str, Any]

    def text(self, field: str) -> str:
        value = self.table.get(field)
        return value if isinstance(value, str) else ""


def check(case: Case) -> Iterator[Finding]:
    """The two files as Codex reads them; nothing is changed."""
    folder = home(case)
    config = folder / "config.toml"
    try:
        text = config.read_text()
    except FileNotFoundError:
        yield _absent(folder)
        return
    except (OSError, UnicodeDecodeError) as error:
        yield TOPIC.error(
            f"{config} cannot be read ({type(error).__name__}).",
            "Codex ends at its start.",
            f"chmod u+r {config}",
        )
        return
    try:
        settings = _with_profile(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        yield TOPIC.error(
            f"{config} is no TOML: {error}.",
            "Codex ends at its start.",
            f"${{EDITOR:-vi}} {config}",
        )
        return
    found = list(_settings(case, config, settings))
    yield from found or [TOPIC.ok(f"{config} has model, provider, base URL and key.")]


def home(case: Case) -> Path:
    """Where Codex keeps its files."""
    return Home(case.home, case.env).path(CONFIG).parent


def _absent(folder: Path) -> Finding:
    if not folder.is_dir():
        return TOPIC.ok(f"Codex is not set up here: there is no {folder}.")
    return TOPIC.warning(
        f"There is no config.toml in {folder}.",
        "Codex goes to OpenAI then, not to the gateway.",
        _CONNECT,
    )


def _with_profile(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings under the profile they name, if any."""
    profiles = settings.get("profiles")
    profile = profiles.get(settings.get("profile")) if isinstance(profiles, dict) else None
    return settings | profile if isinstance(profile, dict) else settings


def _settings(case: Case, config: Path, settings: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _model(case, config, settings)
    chosen = str(settings.get("model_provider", "openai"))
    found = settings.get("model_providers")
    tables = found if isinstance(found, dict) else {}
    table = tables.get(chosen)
    if chosen == "openai":
        yield from _openai(case, config, settings, forgotten=bool(tables))
    elif isinstance(table, dict):
        provider = Provider(chosen, table)
        yield from _provider(case, config, provider)
        yield from _key(case, config, settings, provider)
    elif chosen not in BUILT_IN:
        names = ", ".join(tables) or "none"
        yield TOPIC.error(
            f"model_provider in {config} is {chosen!r}, and there is no "
            f"[model_providers.{chosen}]; there are: {names}.",
            "Codex ends at its start.",
            f'model_provider = "{next(iter(tables))}"   # in {config}' if tables else _CONNECT,
        )
    else:
        yield _elsewhere(config, f"model_provider is {chosen!r}, one of Codex's own")


def _model(case: Case, config: Path, settings: Mapping[str, Any]) -> Iterator[Finding]:
    model = settings.get("model")
    first = next(iter(case.models), "MODEL")
    fix = f'model = "{case.given_model or first}"   # in {config}, above the first [table]'
    if not isinstance(model, str) or not model:
        yield TOPIC.error(
            f"{config} names no model.",
            "Codex asks for one of OpenAI's, which the gateway answers with 404.",
            fix,
        )
    elif case.serves(model) is False:
        yield TOPIC.error(
            f"model in {config} is {model!r}, which the gateway does not serve to this key.",
            f"Codex sends each request six times and gets 404. Ids: {', '.join(case.models)}.",
            fix,
        )


def _openai(
    case: Case, config: Path, settings: Mapping[str, Any], *, forgotten: bool
) -> Iterator[Finding]:
    """Codex's own provider, which can be pointed elsewhere by one setting.

    Args:
        forgotten: there are other providers, so that not to choose one is hardly meant.
    """
    url = settings.get("openai_base_url")
    if not isinstance(url, str) or not url:
        finding = _elsewhere(config, "no model_provider is set")
        yield replace(finding, severity=Severity.ERROR) if forgotten else finding
        return
    line = f'openai_base_url = "{{url}}"   # in {config}'
    name = f"openai_base_url in {config}"
    yield from client_url.check(case, TOPIC, name=name, url=url, versioned=True, line=line)
    yield from _login(case, settings, {})


def _elsewhere(config: Path, how: str) -> Finding:
    return TOPIC.warning(
        f"In {config} {how}.",
        "Codex goes to that provider, not to the gateway.",
        _CONNECT,
    )


def _provider(case: Case, config: Path, provider: Provider) -> Iterator[Finding]:
    where = f"[model_providers.{provider.name}] of {config}"
    url = provider.text("base_url")
    if url:
        yield from client_url.check(
            case,
            TOPIC,
            name=f"base_url in {where}",
            url=url,
            versioned=True,
            line=f'base_url = "{{url}}"   # in {where}',
        )
    else:
        yield TOPIC.error(
            f"base_url is missing in {where}.",
            "Base URL, key and model must all three be set; Codex goes to OpenAI otherwise.",
            f'base_url = "{case.address.openai}"   # in {where}',
        )
    wire = provider.table.get("wire_api")
    if wire is None:
        yield TOPIC.warning(
            f"wire_api is missing in {where}.",
            "Older versions of Codex take the chat API then, which newer ones do not speak.",
            f'wire_api = "responses"   # in {where}',
        )
    elif wire != "responses":
        yield TOPIC.error(
            f"wire_api in {where} is {wire!r}.",
            "Codex speaks the Responses API alone and refuses any other value at its start.",
            f'wire_api = "responses"   # in {where}',
        )


def _key(
    case: Case, config: Path, settings: Mapping[str, Any], provider: Provider
) -> Iterator[Finding]:
    """The key's place: a variable, the table itself, or auth.json."""
    where = f"[model_providers.{provider.name}] of {config}"
    variable = provider.text("env_key")
    bearer = provider.text("experimental_bearer_token")
    case.mask.add(bearer)
    if variable:
        yield from _variable(case, where, variable)
    elif bearer:
        for flaw in flaws(bearer):
            yield TOPIC.error(
                f"experimental_bearer_token in {where}: {flaw}.",
                "The gateway answers 401.",
                f'env_key = "GATEWAY_KEY"   # in {where}, instead of the token',
            )
    elif provider.table.get("requires_openai_auth") is True:
        yield from _login(case, settings, provider.table)
    elif not {"http_headers", "env_http_headers", "auth"} & provider.table.keys():
        yield TOPIC.error(
            f"{where} says nothing of a key: neither env_key nor requires_openai_auth.",
            "Base URL, key and model must all three be set; Codex sends no key, and gets 401 six "
            "times.",
            f'env_key = "GATEWAY_KEY"   # in {where}',
        )


def _login(
    case: Case, settings: Mapping[str, Any], provider: Mapping[str, Any]
) -> Iterator[Finding]:
    """What `codex login` keeps, in auth.json or, if so configured, in the system's keyring."""
    folder = home(case)
    store = settings.get("cli_auth_credentials_store", "file")
    if store != "file" and not (folder / "auth.json").exists():
        yield TOPIC.warning(
            f"Codex keeps its key in the system's keyring (cli_auth_credentials_store is {store}).",
            "It cannot be looked at from here; base URL, key and model must all three be set.",
            "codex login status",
        )
        return
    yield from codex_auth.check(case, TOPIC, folder)
    yield from codex_oauth.check(case, TOPIC, folder, provider)


def _variable(case: Case, where: str, variable: str) -> Iterator[Finding]:
    value = case.env.get(variable)
    export = f"export {variable}=KEY   # where Codex is started"
    case.mask.add(value or "")
    if value is None or not value.strip():
        state = "not set" if value is None else "empty"
        yield TOPIC.error(
            f"env_key in {where} is {variable}, which is {state} here.",
            "Codex ends at its start, or sends no key and gets 401. It does not look into "
            "auth.json where env_key is set.",
            export,
        )
        return
    for flaw in flaws(value):
        yield TOPIC.error(
            f"{variable}, the key of {where}: {flaw}.", "The gateway answers 401.", export
        )
