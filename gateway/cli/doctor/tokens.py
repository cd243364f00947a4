"""What an OAuth token says of itself. It is read, never verified: the doctor decides nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

DAY = 86_400.0


def claims(token: str) -> Mapping[str, Any]:
    """The claims of a JWT; empty if it is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    payload = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        found = json.loads(base64.urlsafe_b64decode(payload))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def expiry(token: str) -> float | None:
    """Seconds since the epoch; None if the token does not say."""
    exp = claims(token).get("exp")
    return float(exp) if isinstance(exp, int | float) and not isinstance(exp, bool) else None


def scopes(value: object) -> frozenset[str]:
    """The scopes of a claim or a setting: words in one string, or a list of them."""
    if isinstance(value, str):
        return frozenset(value.replace(",", " ").split())
    if isinstance(value, list):
        return frozenset(part for part in value if isinstance(part, str))
    return frozenset()


def granted(token: str) -> frozenset[str]:
    """The scopes a token says it has; `scp` is Microsoft's and OpenAI's word for it."""
    found = claims(token)
    return scopes(found.get("scope")) or scopes(found.get("scp"))


def moment(text: object) -> float | None:
    """Seconds since the epoch of an RFC 3339 time; None if it is none."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def date(at: float) -> str:
    """A time for people; far ones are cut to what the calendar has."""
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "a time no calendar has"
