"""No secret is printed: what is known, and what looks like one, is masked in every text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

SHOWN = 4
"""Characters of a secret that are shown, so that people can tell which of theirs it is."""

_LONG = 16
"""Below this length the first characters would be too much of it."""

_WORTH = 6
"""Shorter values are no secrets, and would be found everywhere."""

_BY_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)S?$", re.IGNORECASE)
_CONTROL = re.compile(r"[^\S \n]|[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_NAME = r"[\w-]*(?:key|token|secret|password|authorization)"
_PREFIXED = r"\b(?:sk|pk|gsk|hf|xai)[-_][\w-]{8,}"
_LOOKS_LIKE_ONE = (
    re.compile(r"()(eyJ[\w-]{6,}\.[\w-]+(?:\.[\w-]*)?)"),
    re.compile(r"(\b(?:bearer|basic)\s+)([\w.~+/=-]{8,})", re.IGNORECASE),
    re.compile(rf"()({_PREFIXED})"),
    re.compile(rf'("{_NAME}"\s*:\s*")([^"]{{6,}})', re.IGNORECASE),
)
# A line of a JSON, TOML or YAML file. `env_key` names a variable; it holds no secret.
_SETTING = re.compile(
    rf"""(?P<name>["']?\b(?!env_key){_NAME}\w*["']?\s*[:=]\s*)"""
    rf"""(?P<quote>["']?)(?P<value>(?<=")[^"]*|(?<=')[^']*|[^"'\s,}}][^,}}]*)|{_PREFIXED}""",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(://)[^/@\s]+@")


def masked(secret: str) -> str:
    """A secret's first characters and its length, such as `sk-t… (30 characters)`.

    Of one shorter than 16 characters only the length is told.
    """
    shown = secret[:SHOWN] if len(secret) >= _LONG else ""
    return f"{printable(shown)}… ({len(secret)} characters)"


def printable(text: str) -> str:
    """Without characters that steer a terminal; what servers answer is printed."""
    return _CONTROL.sub("?", text)


def hide_setting(line: str) -> str:
    """A line of a settings file without the secret it sets."""
    return _SETTING.sub(
        lambda found: (
            f"{found['name']}{found['quote']}{masked(found['value'])}"
            if found["name"]
            else masked(found[0])
        ),
        line,
    )


class Mask:
    """Hides secrets in texts: those it was told, and whatever has the form of one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Learn secrets, each as it is and without what people copy along."""
        for secret in secrets:
            for form in (secret, bare(secret)):
                if len(form) >= _WORTH:
                    self._known.add(form)

    def learn(self, env: Mapping[str, str]) -> None:
        """Learn the environment's secrets, by the names of the variables."""
        self.add(*(value for name, value in env.items() if _BY_NAME.search(name)))

    def hide(self, text: str) -> str:
        """The text with every secret masked, and harmless to print."""
        for secret in sorted(self._known, key=len, reverse=True):
            text = text.replace(secret, masked(secret))
        for form in _LOOKS_LIKE_ONE:
            text = form.sub(lambda match: match[1] + masked(match[2]), text)
        return printable(_USERINFO.sub(r"\1…@", text))


def bare(secret: str) -> str:
    """A key without quotes, blanks and the word Bearer around it."""
    text = secret.strip().strip("\"'`").strip()
    scheme, blank, rest = text.partition(" ")
    return rest.strip() if blank and scheme.lower() == "bearer" else text
