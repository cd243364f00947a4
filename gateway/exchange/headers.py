"""Which headers cross the gateway.

What belongs to one connection, to one party's credentials or to the gateway itself stays on its
side (RFC 9110 §7.6.1); everything else travels as it came.
"""

from __future__ import annotations

from collections.abc import Sequence

Headers = list[tuple[bytes, bytes]]

_HOP_BY_HOP = {
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
# The body that goes out is the gateway's (decoded, spliced), so its framing is too; replies must
# be readable on the way, so the backend is not offered the client's codings.
_REQUEST_OWN = {
    b"host",
    b"expect",
    b"content-length",
    b"content-encoding",
    b"accept-encoding",
    b"x-request-id",
}
_CREDENTIALS = {b"authorization", b"x-api-key", b"api-key", b"cookie"}
# With these one key could disturb another's requests inside the engine.
_ENGINE_ONLY = {b"x-vllm-priority", b"x-data-parallel-rank"}

_NOT_TO_BACKEND = _HOP_BY_HOP | _REQUEST_OWN | _CREDENTIALS
_NOT_TO_BACKEND_EITHER = _NOT_TO_BACKEND | _ENGINE_ONLY
_NOT_TO_CLIENT = _HOP_BY_HOP | {
    b"content-length",
    b"content-type",
    b"cache-control",
    b"x-accel-buffering",
    b"date",
    b"server",
    b"set-cookie",
    b"x-request-id",
}


def to_backend(headers: Sequence[tuple[bytes, bytes]], *, engine_fields: bool) -> bytes:
    """The client's headers that a backend may see, as lines of a request head.

    Args:
        headers: as received, names in lower case.
        engine_fields: the key may send engine-only headers.
    """
    unwanted = _NOT_TO_BACKEND if engine_fields else _NOT_TO_BACKEND_EITHER
    named = _named_by_connection(headers)
    return b"".join(
        [
            b"%b: %b\r\n" % (name, value)
            for name, value in headers
            if name not in unwanted and name not in named and name[:10] != b"x-gateway-"
        ]
    )


def to_client(headers: Sequence[tuple[bytes, bytes]]) -> Headers:
    """The backend's headers that a client may see, without the ones that frame the body."""
    named = _named_by_connection(headers)
    return [
        header
        for header in headers
        if header[0] not in _NOT_TO_CLIENT
        and header[0] not in named
        and header[0][:10] != b"x-gateway-"
        # Whom browsers may show an answer to is the gateway's to say.
        and header[0][:15] != b"access-control-"
    ]


def find(headers: Sequence[tuple[bytes, bytes]], wanted: bytes) -> bytes:
    """The first value of a header, or nothing."""
    for name, value in headers:
        if name == wanted:
            return value
    return b""


def _named_by_connection(headers: Sequence[tuple[bytes, bytes]]) -> Sequence[bytes]:
    value = b",".join([value for name, value in headers if name == b"connection"])
    if not value or value in (b"keep-alive", b"close"):
        return ()
    return [token.strip() for token in value.lower().split(b",")]
