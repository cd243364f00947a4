from __future__ import annotations

from array import array

from gateway.simulator.prefix_cache import BlockTable, PrefixCache


def table(*tokens: int, size: int = 2, salt: str = "") -> BlockTable:
    found = BlockTable()
    found.extend_hashes(array("I", tokens), size, salt)
    return found


def held(cache: PrefixCache, *tokens: int, salt: str = "") -> BlockTable:
    """A table of `tokens` that has its blocks."""
    found = table(*tokens, size=cache.block_size, salt=salt)
    assert cache.allocate(found, len(tokens), cache.lookup(found, len(tokens)))
    return found


def hits(cache: PrefixCache, *tokens: int, salt: str = "") -> int:
    """How many of `tokens`' blocks are cached."""
    return len(cache.lookup(table(*tokens, size=cache.block_size, salt=salt), len(tokens)))


def test_a_block_is_known_by_all_that_stands_before_it() -> None:
    one, other = table(1, 2, 3, 4), table(9, 9, 3, 4)
    assert one.hashes[1] != other.hashes[1]
    assert table(1, 2, 3, 5).hashes[0] == one.hashes[0]


def test_hashes_grow_with_the_tokens_and_stay_the_same() -> None:
    growing = BlockTable()
    for end in range(1, 8):
        growing.extend_hashes(array("I", range(end)), 2)
        assert len(growing.hashes) == end // 2
    assert growing.hashes == table(0, 1, 2, 3, 4, 5).hashes


def test_a_salt_keeps_prompts_apart() -> None:
    cache = PrefixCache(8, 2)
    held(cache, 1, 2, 3, 4, 5, salt="alice")
    assert hits(cache, 1, 2, 3, 4, 5) == 0
    assert hits(cache, 1, 2, 3, 4, 5, salt="bob") == 0
    assert hits(cache, 1, 2, 3, 4, 5, salt="alice") == 2


def test_hits_end_with_the_first_block_that_differs() -> None:
    cache = PrefixCache(8, 2)
    held(cache, 1, 2, 3, 4, 5, 6, 7)
    assert hits(cache, 1, 2, 3, 4, 9, 9, 9) == 2
    assert hits(cache, 1, 2, 9, 9, 5, 6, 7) == 1
    assert hits(cache, 9, 2, 3, 4, 5, 6, 7) == 0


def test_only_full_blocks_are_hit_and_the_last_token_is_always_computed() -> None:
    cache = PrefixCache(8, 2)
    held(cache, 1, 2, 3, 4, 5)
    assert hits(cache, 1, 2, 3, 4, 5, 6) == 2
    assert hits(cache, 1, 2, 3, 4) == 1
    assert hits(cache, 1, 2, 3) == 1
    assert hits(cache, 1, 2) == 0


def test_blocks_are_shared_not_copied() -> None:
    cache = PrefixCache(8, 2)
    first = held(cache, 1, 2, 3, 4, 5)
    second = held(cache, 1, 2, 3, 4, 6)
    assert first.blocks[:2] == second.blocks[:2]
    assert cache.used_blocks == 4
    cache.release(first)
    assert cache.used_blocks == 3
    cache.release(second)
    assert cache.used_blocks == 0
    assert hits(cache, 1, 2, 3, 4, 5) == 2


def test_the_least_recently_used_goes_first_and_tails_before_heads() -> None:
    cache = PrefixCache(6, 2)
    old = held(cache, 1, 2, 3, 4)
    new = held(cache, 5, 6, 7, 8)
    cache.release(old)
    cache.release(new)
    third = held(cache, 11, 12, 13, 14, 15, 16)
    # Two blocks were never used; the third is the tail of the oldest.
    assert hits(cache, 1, 2, 3, 4, 0) == 1
    assert hits(cache, 5, 6, 7, 8, 0) == 2
    cache.release(third)
    assert cache.free_blocks == 6


def test_a_hit_makes_blocks_recent_again() -> None:
    cache = PrefixCache(4, 2)
    old = held(cache, 1, 2, 3)
    new = held(cache, 5, 6, 7)
    cache.release(old)
    cache.release(new)
    cache.release(held(cache, 1, 2, 3))
    held(cache, 11, 12, 13, 14, 15)
    assert hits(cache, 1, 2, 3) == 1
    assert hits(cache, 5, 6, 7) == 0


def test_blocks_in_use_are_never_evicted() -> None:
    cache = PrefixCache(3, 2)
    held(cache, 1, 2, 3)
    wanted = table(5, 6, 7, 8)
    assert not cache.allocate(wanted, 4)
    assert (wanted.blocks, cache.free_blocks) == ([], 1)
    assert hits(cache, 1, 2, 3) == 1


def test_cached_blocks_nobody_uses_count_as_needed_when_they_are_hit() -> None:
    cache = PrefixCache(4, 2)
    cache.release(held(cache, 1, 2, 3, 4, 5))
    again = table(1, 2, 3, 4, 5)
    found = cache.lookup(again, 5)
    # Two hits and one new block; another prompt leaves two.
    held(cache, 7, 8)
    held(cache, 9, 10)
    assert not cache.fits(5, found)


def test_one_of_two_copies_may_be_evicted() -> None:
    cache = PrefixCache(3, 2)
    first, second = table(1, 2, 3), table(1, 2, 3)
    # Both began before either was registered.
    assert cache.allocate(first, 1)
    assert cache.allocate(second, 1)
    assert cache.allocate(first, 2)
    assert cache.allocate(second, 2)
    cache.release(first)
    held(cache, 7, 8, 9, 10)
    assert hits(cache, 1, 2, 3) == 1


def test_nothing_is_hit_with_caching_off() -> None:
    cache = PrefixCache(8, 2, enabled=False)
    held(cache, 1, 2, 3, 4, 5)
    assert hits(cache, 1, 2, 3, 4, 5) == 0
