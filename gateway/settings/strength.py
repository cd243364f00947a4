"""Whether a key is hard to guess: at least 128 bits, and not one of the well-known bad ones."""

from __future__ import annotations

import math
import re

MINIMUM_BITS = 128
ADVICE = "make one with: openssl rand -hex 32"

_PREFIX = re.compile(r"(?:sk|gw)[-_]")
_ALPHABETS = ((r"[0-9]+", 10), (r"[0-9a-f]+|[0-9A-F]+", 16), (r"[0-9a-z]+|[0-9A-Z]+", 36))
_URL_SAFE = 64
_PLACEHOLDER = re.compile(
    r"change[-_]?me|replace[-_]?(?:me|this|with)|your[-_]?(?:api|admin|secret)?[-_]?key|example|"
    r"placeholder|password|passwd|12345678|abcdefgh|qwerty|(.)\1{7}",
    re.IGNORECASE,
)
_MINIMUM_DISTINCT = 9


def weakness(key: str) -> str | None:
    """What makes a key weak, as a sentence with advice; None for a good one.

    Length counts by the alphabet the key keeps to: 22 characters of url-safe base64 or 32
    hexadecimal digits hold 128 bits. Random keys pass: fewer than nine distinct characters
    come up three times in a million keys of 32 hexadecimal digits.
    """
    body = _PREFIX.sub("", key, count=1) if _PREFIX.match(key) else key
    bits = len(body) * math.log2(_alphabet(body))
    if bits < MINIMUM_BITS:
        return f"is too short: a key needs at least {MINIMUM_BITS} random bits; {ADVICE}"
    if _PLACEHOLDER.search(body) or _repeats(body) or len(set(body)) < _MINIMUM_DISTINCT:
        return f"is easy to guess; {ADVICE}"
    return None


def _alphabet(body: str) -> int:
    return next((size for form, size in _ALPHABETS if re.fullmatch(form, body)), _URL_SAFE)


def _repeats(body: str) -> bool:
    """Whether the whole is one piece said several times."""
    return body in (body + body)[1:-1]
