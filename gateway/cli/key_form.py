"""What is wrong with a key by its mere form, and what gave it.

The copy is at fault more often than the key, and there may be several.
"""

from __future__ import annotations

import os
import re

from gateway.cli.masking import bare
from gateway.keys.keyring import SHORTEST_KEY

_BEARER = re.compile(r"\s*[\"']?\s*bearer\s", re.IGNORECASE)
_UNFILLED = re.compile(
    r"\$\{?\w+\}?|<[^>]*>|your[-_ ]?(?:\w+[-_ ]?)?key|.*(?:\.\.\.|…).*", re.IGNORECASE
)


def flaws(key: str) -> list[str]:
    """What no key of the gateway has, each as `it …`; empty for one that may be right."""
    if not key.strip():
        return ["it is empty"]
    found = []
    if _UNFILLED.fullmatch(key.strip()):
        found.append("it is a placeholder, or was shortened when it was copied")
    if _BEARER.match(key):
        found.append("the word Bearer is in it, which clients add themselves")
    elif key.strip()[0] in "\"'`" or key.strip()[-1] in "\"'`":
        found.append("it has quotes around it, which became part of it")
    if "\n" in key or "\r" in key:
        found.append("there is a line break in it")
    elif key != key.strip():
        found.append("there are blanks around it")
    elif any(c.isspace() for c in bare(key)):
        found.append("there are blanks in it")
    if not key.isascii():
        found.append("it has characters that no header can hold")
    if not found and len(key) < SHORTEST_KEY:
        found.append(
            f"it has {len(key)} characters, and a key of the gateway at least {SHORTEST_KEY}"
        )
    return found


def sendable(key: str) -> bool:
    """Whether an HTTP header can hold this key as it is."""
    return bool(key) and key.isascii() and key.isprintable() and key == key.strip()


def origin(key: str, variable: str, otherwise: str) -> str:
    """What gave a key: the variable of the environment if that holds it, else as is told."""
    return variable if os.environ.get(variable) == key else otherwise
