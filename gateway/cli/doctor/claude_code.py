"""Claude Code: the env block of its settings.json files, over the environment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gateway.cli.connect.userfiles import Home
from gateway.cli.doctor import client_url
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Severity, Topic
from gateway.cli.key_form import flaws
from gateway.clients.claude_code import BASE_URL, MODEL, SETTINGS, SMALL_MODEL, TOKEN

TOPIC = Topic("claude-code")

KEY = "ANTHROPIC_API_KEY"
OLD_SMALL_MODEL = "ANTHROPIC_SMALL_FAST_MODEL"


class Value(NamedTuple):
    """A setting, and the file (or environment) it is from."""

    value: str
    place: str


class Setup:
    """What Claude Code would go by: the environment, over it the user's, then the project's files.

    Attributes:
        user: the user's settings file, where fixes are to be written.
    """

    def __init__(self, case: Case) -> None:
        self.user = Home(case.home, case.env).path(SETTINGS)
        project = case.folder / ".claude"
        self.files = [self.user, project / "settings.json", project / "settings.local.json"]
        self.values = {
            name: Value(value, "the environment")
            for name, value in case.env.items()
            if name.startswith("ANTHROPIC_") and value
        }
        self.other: dict[str, Any] = {}

    def read(self) -> Iterator[Finding]:
        """Take in the files that are there; the findings are their faults."""
        for path in dict.fromkeys(self.files):
            try:
                found = json.loads(path.read_bytes())
            except FileNotFoundError:
                continue
            except json.JSONDecodeError as error:
                at = f"{error.msg}, line {error.lineno}, column {error.colno}"
                yield _unreadable(path, f"is no JSON: {at}")
                continue
            except (OSError, ValueError, RecursionError) as error:
                yield _unreadable(path, f"cannot be read ({type(error).__name__})")
                continue
            env = found.get("env", {}) if isinstance(found, dict) else None
            if not isinstance(env, dict):
                yield _unreadable(path, "holds no object, or no object under env")
                continue
            self.other |= found
            yield from self._take(path, env)

    def _take(self, path: Path, env: Mapping[str, Any]) -> Iterator[Finding]:
        for name, value in env.items():
            if isinstance(value, str):
                self.values[name] = Value(value, str(path))
            else:
                yield TOPIC.error(
                    f"{name} under env in {path} is no string.",
                    "Claude Code does not take over a file it finds a fault in.",
                    f'"{name}": "…"   # under env in {path}',
                )

    def get(self, name: str) -> str:
        return self.values[name].value if name in self.values else ""

    def named(self, name: str) -> str:
        """A setting by its name and place."""
        return f"{name} in {self.values[name].place}"

    def line(self, name: str, value: str) -> str:
        """The line that sets a value, where it is set now, or in the user's file."""
        place = self.values[name].place if name in self.values else str(self.user)
        if place == "the environment":
            return f"export {name}={value}"
        return f'"{name}": "{value}"   # under env in {place}'


def check(case: Case) -> Iterator[Finding]:
    """Base URL, credential and models; nothing is changed."""
    setup = Setup(case)
    found = list(setup.read())
    case.mask.add(*(v.value for n, v in setup.values.items() if n in (TOKEN, KEY)))
    if not found and not setup.user.exists() and not setup.values:
        yield TOPIC.ok(f"Claude Code is not set up here: there is no {setup.user}.")
        return
    if setup.values.keys() & {BASE_URL, TOKEN, MODEL, SMALL_MODEL}:
        found += [*_base_url(case, setup), *_credential(setup), *_models(case, setup)]
    elif not found:
        # Without a sign of another server it may well be meant to talk to Anthropic.
        finding = _no_base_url(case, setup)
        fix = "gateway connect claude-code --write"
        found.append(replace(finding, severity=Severity.WARNING, fix=fix))
    yield from found or [TOPIC.ok("Claude Code has base URL, key and model.")]


def _unreadable(path: Path, what: str) -> Finding:
    return TOPIC.error(
        f"{path} {what}.",
        "Claude Code leaves out all that stands in it, the base URL and the key, too.",
        f"${{EDITOR:-vi}} {path}",
    )


def _base_url(case: Case, setup: Setup) -> Iterator[Finding]:
    url = setup.get(BASE_URL)
    if not url:
        yield _no_base_url(case, setup)
        return
    yield from client_url.check(
        case,
        TOPIC,
        name=setup.named(BASE_URL),
        url=url,
        versioned=False,
        line=setup.line(BASE_URL, "{url}"),
    )


def _no_base_url(case: Case, setup: Setup) -> Finding:
    return TOPIC.error(
        f"{BASE_URL} is not set.",
        "Claude Code goes to Anthropic, not to the gateway.",
        setup.line(BASE_URL, case.address.root),
    )


def _credential(setup: Setup) -> Iterator[Finding]:
    token, key = setup.get(TOKEN), setup.get(KEY)
    if token and key:
        yield TOPIC.warning(
            f"Both {setup.named(TOKEN)} and {setup.named(KEY)} are set.",
            "Claude Code sends both. The gateway takes the token first; other servers take the "
            "other one, and Claude Code warns at each start.",
            f"unset {KEY}"
            if setup.values[KEY].place == "the environment"
            else f'"{KEY}": ""   # under env in {setup.values[KEY].place}',
        )
    elif not token and not key and "apiKeyHelper" not in setup.other:
        empty = next((name for name in (TOKEN, KEY) if name in setup.values), "")
        yield TOPIC.error(
            f"{setup.named(empty)} is empty." if empty else f"Neither {TOKEN} nor {KEY} is set.",
            "Claude Code asks to log in to Anthropic, or gets 401.",
            setup.line(empty or TOKEN, "KEY"),
        )
    for name in (TOKEN, KEY):
        for flaw in flaws(setup.get(name)) if setup.get(name) else ():
            yield TOPIC.error(
                f"{setup.named(name)}: {flaw}.",
                "The gateway answers 401.",
                setup.line(name, "KEY"),
            )


def _models(case: Case, setup: Setup) -> Iterator[Finding]:
    first = case.given_model or next(iter(case.models), "MODEL")
    model = setup.get(MODEL)
    if not model and isinstance(setup.other.get("model"), str):
        model = setup.other["model"]
    small = setup.get(SMALL_MODEL) or setup.get(OLD_SMALL_MODEL)
    for name, value, usual, what in (
        (MODEL, model, "claude-sonnet-4-5", "for each answer"),
        (SMALL_MODEL, small, "claude-haiku-4-5", "for titles"),
    ):
        if not value and case.serves(usual):
            continue
        if not value:
            yield TOPIC.warning(
                f"{name} is not set.",
                f"Claude Code asks for a model of Anthropic's name {what}, which gets 404 unless "
                'the gateway has an alias for it, such as "claude-*".',
                setup.line(name, first),
            )
        elif case.serves(value) is False:
            yield TOPIC.error(
                f"{name} is {value!r}, which the gateway does not serve to this key.",
                f"Claude Code tells of an issue with the selected model. Ids: "
                f"{', '.join(case.models)}.",
                setup.line(name, first),
            )
