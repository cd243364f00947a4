"""Codex's auth.json: an API key, or the tokens of a login."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Topic
from gateway.cli.doctor.tokens import DAY, date, expiry, moment
from gateway.cli.key_form import flaws
from gateway.cli.masking import masked
from gateway.clients.codex import KEY_IN_AUTH

STALE = 8 * DAY
"""Codex refreshes its tokens once they are this old; older ones are not in use, or refused."""

_LOGIN = "codex login"


def read(case: Case, folder: Path) -> Mapping[str, Any] | str:
    """The file's content, with its secrets made known to the mask; or what is wrong with it."""
    path = folder / "auth.json"
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return f"there is no {path}"
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})"
    except json.JSONDecodeError as error:
        return f"{path} is no JSON: {error.msg}, line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        return f"{path} is no JSON"
    if not isinstance(found, dict):
        return f"{path} holds no JSON object"
    case.mask.add(_text(found, KEY_IN_AUTH), *tokens(found).values())
    return found


def tokens(auth: Mapping[str, Any]) -> dict[str, str]:
    """The tokens of a login by name; empty if there are none."""
    found = auth.get("tokens")
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str) and value}


def check(case: Case, topic: Topic, folder: Path) -> Iterator[Finding]:
    """The credential Codex would take from auth.json."""
    auth = read(case, folder)
    path = folder / "auth.json"
    if isinstance(auth, str):
        yield topic.error(
            f"The key should be in auth.json, but {auth}.",
            "Base URL, key and model must all three be set; Codex asks to log in, or gets 401.",
            "printenv GATEWAY_KEY | codex login --with-api-key",
        )
        return
    key, login = auth.get(KEY_IN_AUTH), tokens(auth)
    if isinstance(key, str) and key:
        for flaw in flaws(key):
            yield topic.error(
                f"{KEY_IN_AUTH} in {path}, {masked(key)}: {flaw}.",
                "The gateway answers 401.",
                "printenv GATEWAY_KEY | codex login --with-api-key",
            )
    elif "access_token" in login:
        yield from _login(case, topic, path, auth, login)
    else:
        yield topic.error(
            f"{path} has neither {KEY_IN_AUTH} nor an access token.",
            "Base URL, key and model must all three be set; Codex asks to log in, or gets 401.",
            "printenv GATEWAY_KEY | codex login --with-api-key",
        )


def _login(
    case: Case, topic: Topic, path: Path, auth: Mapping[str, Any], login: Mapping[str, str]
) -> Iterator[Finding]:
    now = case.now()
    for name in ("access_token", "id_token"):
        ends = expiry(login.get(name, ""))
        if ends is not None and ends <= now:
            yield topic.error(
                f"The {name.replace('_', ' ')} in {path} expired on {date(ends)}.",
                "Requests with it get 401, unless Codex can still refresh it.",
                _LOGIN,
            )
    refreshed = moment(auth.get("last_refresh"))
    if "last_refresh" in auth and refreshed is None:
        yield topic.error(
            f"last_refresh in {path} is no time.", "Codex does not read the file.", _LOGIN
        )
    elif refreshed is not None and now - refreshed > STALE:
        yield topic.warning(
            f"The tokens in {path} were last refreshed on {date(refreshed)}.",
            "Codex does so every eight days: either it is not in use, or the refresh is refused, "
            "and the next request is, too.",
            _LOGIN,
        )
    if "refresh_token" not in login:
        yield topic.warning(
            f"{path} has no refresh token.",
            "Once the access token has expired, Codex cannot get another one by itself.",
            _LOGIN,
        )


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""
