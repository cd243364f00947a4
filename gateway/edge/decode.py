"""Compressed request bodies, unpacked with a bound: a few kilobytes can hold gigabytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

import zstandard

from gateway.errors import BadRequest, TooLarge

# What is read between two looks at the limit. A byte of deflate packs 1 KiB, and four bytes of
# zstd 128 KiB, so a step comes to 4 or 8 MiB at the most.
ZLIB_STEP = 4096
ZSTD_STEP = 256
# A part costs time even where it brings nothing, and a body has room for a million.
MAX_PARTS = 1000

TOO_LARGE = "The request body is larger than the {limit} MiB this gateway accepts."

_ZSTD = zstandard.ZstdDecompressor(max_window_size=2**27)


class _Unpacker(Protocol):
    """What zlib and zstandard unpack with; `unused_data` is what follows the part."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def decode(body: bytes, coding: bytes, limit: int) -> bytes:
    """The body without its content coding.

    Args:
        coding: the `content-encoding` header; gzip, deflate, zstd, identity or empty.
        limit: most bytes the decoded body may have.

    Raises:
        BadRequest: an unknown coding, or bytes that are not what it says.
        TooLarge: more than `limit` bytes.
    """
    coding = coding.strip().lower()
    if coding in (b"", b"identity"):
        return body
    try:
        if coding in (b"gzip", b"x-gzip", b"deflate"):
            decoded = _gunzipped(body, limit)
        elif coding == b"zstd":
            decoded = _unzstd(body, limit)
        else:
            name = coding.decode("latin-1")[:40]
            raise BadRequest(
                f"content-encoding {name!r} is not supported; send gzip, zstd or no coding.",
                param="content-encoding",
            )
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        name = coding.decode("latin-1")
        raise BadRequest(
            f"The request body is not valid {name}, though content-encoding says so.",
            param="content-encoding",
        ) from error
    if len(decoded) > limit:
        raise TooLarge(TOO_LARGE.format(limit=limit // 2**20))
    return decoded


def _gunzipped(body: bytes, limit: int) -> bytes:
    # Either header is taken, of gzip and of zlib.
    return _unpacked(body, limit, lambda: zlib.decompressobj(wbits=zlib.MAX_WBITS | 32), ZLIB_STEP)


def _unzstd(body: bytes, limit: int) -> bytes:
    return _unpacked(body, limit, _ZSTD.decompressobj, ZSTD_STEP)


def _unpacked(body: bytes, limit: int, begin: Callable[[], _Unpacker], step: int) -> bytes:
    """One part after the other: gzip files may have several members, zstd files several frames."""
    decoded = bytearray()
    position = parts = 0
    while position < len(body) and len(decoded) <= limit:
        unpacker = begin()
        while not unpacker.eof and len(decoded) <= limit:
            piece = body[position : position + step]
            if not piece:
                raise EOFError("the compressed data ends early")
            decoded += unpacker.decompress(piece)
            position += len(piece) - len(unpacker.unused_data)
        parts += 1
        if parts > MAX_PARTS:
            raise BadRequest(
                f"The request body consists of more than {MAX_PARTS} compressed parts; compress "
                "it as one.",
                param="content-encoding",
            )
    return bytes(decoded)
