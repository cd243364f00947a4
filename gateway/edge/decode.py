"""Compressed request bodies, unpacked with a bound: a few kilobytes can hold gigabytes."""

from __future__ import annotations

import zlib

import zstandard

from gateway.errors import BadRequest, TooLarge

# What is unpacked between two looks at the limit. A frame of zstd packs 128 KiB in a few bytes, so
# a step of this size comes to 8 MiB at the most.
STEP = 256

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


def _inflate(body: bytes, limit: int) -> bytes:
    decoded = b""
    while body and len(decoded) <= limit:  # a gzip file may have several members
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # a gzip or a zlib header
        decoded += unpacker.decompress(body, limit + 1 - len(decoded))
        if len(decoded) <= limit and not unpacker.eof:
            raise EOFError("the compressed data ends early")
        body = unpacker.unused_data
    return decoded


def _unzstd(body: bytes, limit: int) -> bytes:
    decoded = bytearray()
    while body and len(decoded) <= limit:  # and a zstd file several frames
        unpacker = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
        with memoryview(body) as view:
            start = 0
            while start < len(view) and not unpacker.eof and len(decoded) <= limit:
                decoded += unpacker.decompress(view[start : start + STEP])
                start += STEP
        if len(decoded) <= limit and not unpacker.eof:
            raise EOFError("the compressed data ends early")
        body = unpacker.unused_data + body[start:]
    return bytes(decoded)
