"""Compressed bodies: what is unpacked, what is refused, and that neither takes much memory."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.decode import decode
from gateway.errors import BadRequest, TooLarge

LIMIT = 2**20
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}
every_coding = pytest.mark.parametrize("coding", PACK)


def refused(body: bytes, coding: str) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        decode(body, coding.encode(), LIMIT)
    assert not isinstance(caught.value, TooLarge)
    assert (caught.value.status, caught.value.param) == (400, "content-encoding")
    return caught.value


@pytest.mark.parametrize("coding", ["", "identity", "Identity", " identity "])
def test_a_body_without_a_coding_is_not_touched(coding: str) -> None:
    assert decode(BODY, coding.encode(), LIMIT) is BODY


@every_coding
@pytest.mark.parametrize("spelled", [str, str.upper, " {} ".format])
def test_what_is_unpacked(coding: str, spelled: Callable[[str], str]) -> None:
    assert decode(PACK[coding](BODY), spelled(coding).encode(), LIMIT) == BODY


@every_coding
@given(body=st.binary(max_size=5000))
def test_any_body(coding: str, body: bytes) -> None:
    assert decode(PACK[coding](body), coding.encode(), LIMIT) == body


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_body_in_several_parts(coding: str) -> None:
    """A gzip file may have several members, and a zstd file several frames."""
    packed = b"".join(PACK[coding](BODY[n : n + 10]) for n in range(0, len(BODY), 10))
    assert decode(packed, coding.encode(), LIMIT) == BODY


def test_zstd_without_a_content_size() -> None:
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    packed = packer.compress(BODY) + packer.flush()
    assert decode(packed, b"zstd", LIMIT) == BODY


@every_coding
@pytest.mark.parametrize("kept", [1, 4, -1, -9])
def test_a_body_that_was_cut(coding: str, kept: int) -> None:
    error = refused(PACK[coding](BODY * 50)[:kept], coding)
    assert f"not valid {coding}" in error.message


@every_coding
@pytest.mark.parametrize("body", [BODY, b"\0" * 40, b"\x1f\x8b" + b"\xff" * 40])
def test_what_is_not_what_it_says(coding: str, body: bytes) -> None:
    assert "though content-encoding says so" in refused(body, coding).message


@pytest.mark.parametrize("coding", ["br", "compress", "gzip, zstd", "x" * 500, "\xe4"])
def test_codings_that_are_not_read(coding: str) -> None:
    with pytest.raises(BadRequest) as caught:
        decode(BODY, coding.encode("latin-1"), LIMIT)
    assert "not supported; send gzip, zstd or no coding" in caught.value.message
    assert len(caught.value.message) < 200


@every_coding
@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1, 3 * LIMIT])
def test_the_limit_is_exact(coding: str, size: int) -> None:
    packed = PACK[coding](b"a" * size)
    if size <= LIMIT:
        assert len(decode(packed, coding.encode(), LIMIT)) == size
    else:
        with pytest.raises(TooLarge, match="larger than the 1 MiB"):
            decode(packed, coding.encode(), LIMIT)


@every_coding
def test_a_bomb_takes_no_more_than_the_limit(coding: str) -> None:
    """A gigabyte of zeros in a megabyte, or in some kilobytes of zstd."""
    if coding == "zstd":
        packer = zstandard.ZstdCompressor().compressobj()
        packed = b"".join(packer.compress(bytes(2**22)) for _ in range(64)) + packer.flush()
    else:
        packed = PACK[coding](bytes(2**26))
    began = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            decode(packed, coding.encode(), LIMIT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24 * LIMIT
    assert time.process_time() - began < 2


def test_a_bomb_of_many_parts() -> None:
    """Each part is small; together they are not."""
    packed = gzip.compress(b"a" * 20_000) * 100
    with pytest.raises(TooLarge):
        decode(packed, b"gzip", LIMIT)


def test_many_empty_parts_do_not_take_long() -> None:
    """A part costs time even where it brings nothing."""
    for coding in ("gzip", "zstd"):
        packed = PACK[coding](b"") * 500_000
        began = time.process_time()
        with pytest.raises(BadRequest, match="more than 1000 compressed parts"):
            decode(packed, coding.encode(), LIMIT)
        assert time.process_time() - began < 0.5
