"""What of a prompt can be reused: the rule of old, and what V1 does, against the simulator."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.prefix_cache import BlockTable, PrefixCache
from gateway.vllm import cached_prefix_tokens, can_reuse_prefix

LENGTHS = st.integers(0, 3000)
SIZES = st.integers(1, 300)


@pytest.mark.parametrize(
    ("seq_len", "chunk_size", "block_size", "reusable"),
    [
        (512, 128, 16, True),
        (512, 100, 16, False),
        (512, 512, 16, True),
        (80, 100, 16, True),
        (15, 512, 16, False),
        (0, 512, 16, False),
    ],
)
def test_the_rule_of_old(seq_len: int, chunk_size: int, block_size: int, reusable: bool) -> None:
    assert can_reuse_prefix(seq_len, chunk_size, block_size) is reusable


@given(LENGTHS, SIZES, SIZES)
def test_the_rule_is_about_every_chunk_but_the_last(
    seq_len: int, chunk_size: int, block_size: int
) -> None:
    inner_ends = range(chunk_size, seq_len, chunk_size)

    assert can_reuse_prefix(seq_len, chunk_size, block_size) == (
        seq_len >= block_size and all(end % block_size == 0 for end in inner_ends)
    )


@pytest.mark.parametrize(
    ("prompt", "shared", "block", "cached"),
    [
        (1024, 1024, 16, 1008),
        (1024, 1024, 128, 896),
        (1025, 1024, 16, 1024),
        (1000, 600, 16, 592),
        (1000, 15, 16, 0),
        (1, 1, 1, 0),
        (0, 0, 16, 0),
    ],
)
def test_what_v1_gives_back(prompt: int, shared: int, block: int, cached: int) -> None:
    assert cached_prefix_tokens(prompt, shared, block) == cached


def _computed(cache: PrefixCache, prompt: array[int], chunk_size: int) -> int:
    """Tokens hit by a prompt that is then computed in chunks, and finished."""
    table = BlockTable()
    table.extend_hashes(prompt, cache.block_size)
    hits = cache.lookup(table, len(prompt))
    done = len(hits) * cache.block_size
    for end in [*range(done + chunk_size, len(prompt), chunk_size), len(prompt)]:
        assert cache.allocate(table, end, hits)
        hits = []
    cache.release(table)
    return done


@given(
    prompt_tokens=st.integers(1, 2000),
    share=st.floats(0, 1),
    chunks=st.tuples(st.integers(1, 2500), st.integers(1, 2500)),
    block_size=st.integers(1, 160),
)
def test_the_simulated_cache_agrees_whatever_the_chunk_sizes(
    prompt_tokens: int, share: float, chunks: tuple[int, int], block_size: int
) -> None:
    shared = int(prompt_tokens * share)
    first = array("I", range(prompt_tokens))
    second = first[:shared] + array("I", range(10_000, 10_000 + prompt_tokens - shared))
    cache = PrefixCache(num_blocks=2 * (2000 // block_size + 2), block_size=block_size)

    assert _computed(cache, first, chunks[0]) == 0
    assert _computed(cache, second, chunks[1]) == cached_prefix_tokens(
        prompt_tokens, shared, block_size
    )


@given(LENGTHS, LENGTHS, SIZES)
def test_never_more_than_is_shared_nor_the_last_token(
    prompt: int, shared: int, block_size: int
) -> None:
    shared = min(shared, prompt)
    cached = cached_prefix_tokens(prompt, shared, block_size)

    assert 0 <= cached <= shared
    assert cached % block_size == 0
    assert cached < prompt or cached == 0
    assert shared - cached <= block_size


def test_impossible_sizes() -> None:
    with pytest.raises(ValueError, match="block_size must be at least 1"):
        can_reuse_prefix(512, 128, 0)
    with pytest.raises(ValueError, match="seq_len must be at least 0"):
        can_reuse_prefix(-1, 128, 16)
    with pytest.raises(ValueError, match="at most prompt_tokens"):
        cached_prefix_tokens(10, 11, 16)
