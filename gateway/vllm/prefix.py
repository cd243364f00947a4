"""How much of a prompt the prefix cache can give back, then and now."""

from __future__ import annotations


def can_reuse_prefix(seq_len: int, chunk_size: int, block_size: int) -> bool:
    """Whether every chunk of a prompt ends on a block boundary: the rule of 0.6-era engines.

    A prompt of `seq_len` tokens is computed in chunks of `chunk_size` (`max_num_batched_tokens`).
    The rule says that its blocks of `block_size` tokens can be reused only if no chunk but the
    last ends amid one: 512 tokens at block 16 can in chunks of 128, in chunks of 100 they cannot.
    A prompt shorter than a block is never cached.

    It holds for the V0 engine of 0.6, which goes further and schedules nothing at all with both
    features on and another chunk size: "chunk size must be dividable by block size" (0.6.3.post1,
    `vllm/core/scheduler.py`, `_get_num_new_tokens`). V0 of 0.7.3 to 0.10.2 rounds its chunks down
    to whole blocks instead (same file, `_chunk_new_tokens_to_schedule`). It does not hold for V1:
    see `cached_prefix_tokens`.

    Raises:
        ValueError: a size is below 1, or the length below 0.
    """
    _positive(chunk_size=chunk_size, block_size=block_size)
    _not_negative(seq_len=seq_len)
    if seq_len < block_size:
        return False
    return seq_len <= chunk_size or chunk_size % block_size == 0


def cached_prefix_tokens(prompt_tokens: int, shared_tokens: int, block_size: int) -> int:
    """How many tokens of a prompt the V1 engine finds in its prefix cache, whatever the chunk size.

    Of a prompt of `prompt_tokens`, the first `shared_tokens` were computed before and are still
    cached. Hits end on a block boundary, and at least the last token is computed, since its
    output samples the next one: a prompt of 1024 tokens that is cached as a whole gives back 1008
    at block 16 and 896 at block 128. A shared beginning shorter than a block gives nothing.

    Source: 0.32.0, `vllm/v1/core/kv_cache_manager.py`, `get_computed_blocks`
    (`max_cache_hit_length = request.num_tokens - 1`); that chunks do not matter was measured on
    0.32.0 with blocks of 16 and 128 and chunks from 50 to 2048. Models with Mamba layers, and a
    `--prefix-match-unit` finer than a block, have boundaries of their own.

    Raises:
        ValueError: the block size is below 1, a length below 0, or more is shared than there is.
    """
    _positive(block_size=block_size)
    _not_negative(prompt_tokens=prompt_tokens, shared_tokens=shared_tokens)
    if shared_tokens > prompt_tokens:
        raise ValueError("shared_tokens must be at most prompt_tokens")
    reusable = min(shared_tokens, prompt_tokens - 1)
    return max(0, reusable) // block_size * block_size


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1")


def _not_negative(**lengths: int) -> None:
    for name, length in lengths.items():
        if length < 0:
            raise ValueError(f"{name} must be at least 0")
