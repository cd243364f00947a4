"""Compressed request bodies, unpacked with a bound: a few kilobytes can hold gigabytes."""

from __future__ import annotations

import zlib

import zstandard

from gateway.errors import BadRequest, TooLarge

TOO_LARGE = "The request body is larger than the {limit} MiB this gateway accepts."


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
            decoded = _inflate(body, limit)
        elif coding == b"zstd":
            reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(body)
            decoded = reader.read(limit + 1)
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


def _inflate(body: bytes, limit: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # a gzip or a zlib header
    decoded = unpacker.decompress(body, limit + 1)
    if len(decoded) <= limit and not unpacker.eof:
        raise EOFError("the compressed data ends early")
    return decoded
