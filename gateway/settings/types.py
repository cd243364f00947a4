"""The kinds of value a configuration holds, each with the sentence that refuses a bad one.

A refusal never repeats the value: it may be a secret that was put in the wrong place.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from gateway.vllm import Version
from gateway.vllm.kinds import fault, matching, refused_with

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_MODEL_PATTERN = re.compile(r"[A-Za-z0-9*?][A-Za-z0-9._:/*?-]{0,127}")
_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,255}")
_URL = re.compile(r"[!-~]{1,2048}")
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[A-Za-z0-9.\-\[\]:]+")
_SECRET = re.compile(r"[!-~]{1,4096}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]{0,4094}[!-~])?")
_SHA256 = re.compile(r"[0-9a-f]{64}")

RESERVED_KEY = "unknown"
"""The `key` label of requests without a key that is known."""

RESERVED_MODEL = "unknown"
"""The `model` label of requests that name no configured model."""


def _not_reserved(value: str) -> str:
    if value == RESERVED_MODEL:
        raise fault(f"{RESERVED_MODEL!r} is what metrics call models that are not configured")
    return value


def _no_label(value: str) -> str:
    if value == RESERVED_KEY:
        raise fault(f"{RESERVED_KEY!r} is what metrics call requests without a valid key")
    return value


def _backend_url(value: str) -> str:
    url = _base_url(value, "http://127.0.0.1:8001", "the key a backend asks for goes in api_key")
    if url.endswith("/v1"):
        raise fault("must not end with /v1: the gateway adds the API's own path")
    return url


def _origin(value: str) -> str:
    """As browsers write it, for it is compared letter by letter."""
    origin = value.lower()
    for scheme, port in (("http://", ":80"), ("https://", ":443")):
        if origin.startswith(scheme):
            origin = origin.removesuffix(port)
    return origin


def _otlp_endpoint(value: str) -> str:
    url = _base_url(value, "http://127.0.0.1:4318", "those a collector asks for go in headers")
    if url.endswith("/v1/traces"):
        raise fault("must not end with /v1/traces: the gateway adds that")
    return url


def _base_url(value: str, example: str, credentials: str) -> str:
    """Scheme, host and path, without a slash at the end."""
    expected = f"must be http(s)://host[:port][/prefix], such as {example}"
    if not _URL.fullmatch(value):
        raise fault(expected)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise fault(expected) from None
    if "@" in parts.netloc:
        raise fault(f"must not hold credentials: {credentials}")
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise fault(expected)
    if parts.query or parts.fragment or "?" in value or "#" in value:
        raise fault("must end with the host, the port or a path: no ? and no #")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _proxy_url(value: SecretStr) -> SecretStr:
    expected = "must be http://[user:password@]host[:port], such as http://proxy.example:3128"
    text = value.get_secret_value()
    if not _URL.fullmatch(text):
        raise fault(expected)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise fault(expected) from None
    rest = (parts.path.strip("/"), parts.query, parts.fragment)
    if parts.scheme != "http" or not parts.hostname or port == 0 or any(rest):
        raise fault(expected)
    return value


def _secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text:
        raise fault("is empty: give a value, or leave the line out")
    if not _SECRET.fullmatch(text):
        raise fault(
            "must be printable ASCII without spaces, at most 4096 characters, since it travels in "
            "an HTTP header"
        )
    return value


def _header_value(value: SecretStr) -> SecretStr:
    if not _HEADER_VALUE.fullmatch(value.get_secret_value()):
        raise fault("must be printable ASCII, 1 to 4096 characters, without spaces around it")
    return value


def _no_repeats(values: list[str]) -> list[str]:
    if len(set(values)) < len(values):
        raise fault("names the same thing twice")
    return values


def _rising(values: list[float]) -> list[float]:
    if any(later <= earlier for earlier, later in pairwise(values)):
        raise fault("must rise: each step above the one before")
    return values


def _database_url(value: str) -> str:
    if value.startswith(("postgresql:", "postgres:", "postgresql+")):
        raise fault(
            "PostgreSQL is for state shared by several processes, which does not exist yet: use "
            "sqlite:///gateway.db and run one process"
        )
    if not value.startswith("sqlite:///"):
        raise fault("must be sqlite:///FILE, such as sqlite:///gateway.db")
    if value.removeprefix("sqlite:///").partition("?")[0] in ("", ":memory:"):
        raise fault("must name a file, such as sqlite:///gateway.db: memory forgets the weights")
    return value


def _valkey_url(value: str) -> str:
    raise fault(
        "Valkey is for state shared by several processes, which does not exist yet: leave it out "
        "and run one process"
    )


def _engine_version(value: str) -> str:
    try:
        Version.parse(value)
    except ValueError as error:
        raise fault(str(error)) from None
    return value


def _workers(value: int) -> int:
    if value > 1:
        raise fault(
            "must be 1: several processes need shared state, which does not exist yet; run one "
            "process"
        )
    return value


Name = Annotated[
    str,
    matching(
        _NAME,
        "a name has 1 to 64 characters, letters, digits and . _ -, and begins with a letter "
        "or a digit",
    ),
]
KeyName = Annotated[
    str,
    matching(
        _KEY_NAME,
        "a key's name has 1 to 64 characters, letters, digits and . _ - @ +, and begins with "
        "a letter or a digit",
    ),
    AfterValidator(_no_label),
]
ModelName = Annotated[
    str,
    matching(
        _MODEL_NAME,
        "a model's name has 1 to 128 characters, letters, digits and . _ : / -, and begins "
        "with a letter or a digit",
    ),
    AfterValidator(_not_reserved),
]
ModelPattern = Annotated[
    str,
    matching(
        _MODEL_PATTERN,
        "a model's name or pattern has 1 to 128 characters, letters, digits and . _ : / -, "
        "with * and ? as wildcards",
    ),
]
Host = Annotated[
    str,
    matching(_HOST, "must be a host name or address alone, such as 127.0.0.1, 0.0.0.0 or ::1"),
]
BackendUrl = Annotated[str, AfterValidator(_backend_url)]
OtlpEndpoint = Annotated[str, AfterValidator(_otlp_endpoint)]
ProxyUrl = Annotated[SecretStr, AfterValidator(_proxy_url)]
Origin = Annotated[
    str,
    matching(_ORIGIN, 'must be an origin such as https://console.example.com, or "*" for any'),
    AfterValidator(_origin),
]
Secret = Annotated[SecretStr, AfterValidator(_secret)]
HeaderName = Annotated[
    str,
    matching(_HEADER_NAME, "must be the name of an HTTP header, such as authorization"),
    AfterValidator(str.lower),
]
HeaderValue = Annotated[SecretStr, AfterValidator(_header_value)]
Sha256 = Annotated[
    str,
    AfterValidator(str.lower),
    matching(_SHA256, "must be the 64 hexadecimal digits of the key's SHA-256"),
]
DatabaseUrl = Annotated[str, AfterValidator(_database_url)]
EngineVersion = Annotated[str, AfterValidator(_engine_version)]
ValkeyUrl = Annotated[str, AfterValidator(_valkey_url)]

Count = Annotated[int, Field(ge=1), refused_with("must be a whole number, at least 1")]
CountOrZero = Annotated[int, Field(ge=0), refused_with("must be a whole number, at least 0")]
Port = Annotated[
    int,
    Field(ge=0, le=65535),
    refused_with("must be a port, from 1 to 65535, or 0 for any free one"),
]
Workers = Annotated[Count, AfterValidator(_workers)]

_Float = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[_Float, Field(gt=0), refused_with("must be a number above 0")]
PositiveOrZero = Annotated[_Float, Field(ge=0), refused_with("must be a number, at least 0")]
Share = Annotated[_Float, Field(gt=0, le=1), refused_with("must be a number above 0 and at most 1")]
Ratio = Annotated[_Float, Field(ge=0, le=1), refused_with("must be a number from 0 to 1")]
Percent = Annotated[
    _Float, Field(gt=0, le=100), refused_with("must be above 0 and at most 100 percent")
]
Weight = Annotated[
    _Float, Field(ge=0, le=1_000_000), refused_with("must be a number from 0 to 1000000")
]
NoRepeats = AfterValidator(_no_repeats)
Rising = AfterValidator(_rising)
