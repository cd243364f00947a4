"""Chunk size against block size: an error once, a loss later, and nothing at all today."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.vllm.config import EngineConfig
from gateway.vllm.findings import Finding, Severity
from gateway.vllm.version import Version, runs_v1

DEFAULT_BLOCK = 16
"""Tokens of a block where none is stated, on GPUs."""

_V0_ROUNDS = Version.parse("0.7")
_ALIGN_MODE = Version.parse("0.16")
_BLOCK_FITS_CHUNK = (Version.parse("0.20"), Version.parse("0.25"))


def alignment(config: EngineConfig, version: Version) -> Iterator[Finding]:
    """What a chunk that is no multiple of the block means in a version, if anything."""
    chunk, block = config.max_num_batched_tokens, config.block_size or DEFAULT_BLOCK
    if chunk is None or not config.chunks_prefill(version):
        return
    if runs_v1(version, config.env):
        yield from _in_v1(config, version, chunk, block)
    elif chunk % block and config.prefix_caching:
        yield from _in_v0(version, chunk, block)


def _in_v0(version: Version, chunk: int, block: int) -> Iterator[Finding]:
    multiple = max(block, chunk // block * block)
    advice = f"a multiple of {block}, such as {multiple}"
    if version < _V0_ROUNDS:
        yield Finding(
            "max_num_batched_tokens",
            Severity.ERROR,
            f"{chunk} is no multiple of block_size ({block}) while chunked prefill and prefix "
            "caching are on: the engine fails on the first request",
            "V0 of 0.6",
            advice,
            "vllm/core/scheduler.py in 0.6.3.post1, _get_num_new_tokens; can_reuse_prefix",
        )
        return
    if chunk < block:
        severity, effect = Severity.ERROR, "no prompt ever gets a token computed"
    else:
        severity, effect = Severity.WARNING, f"the engine computes chunks of {multiple}"
    yield Finding(
        "max_num_batched_tokens",
        severity,
        f"{chunk} is no multiple of block_size ({block}), so {effect}",
        "V0 of 0.7 to 0.10",
        advice,
        "vllm/core/scheduler.py in 0.7.3 to 0.10.2, _chunk_new_tokens_to_schedule",
    )


def _in_v1(config: EngineConfig, version: Version, chunk: int, block: int) -> Iterator[Finding]:
    modes = {name.replace("_", "-").lstrip("-"): value for name, value in config.flags.items()}
    if modes.get("mamba-cache-mode") == "align" and version >= _ALIGN_MODE:
        yield from _in_align_mode(version, chunk, block)
    elif chunk % block and config.prefix_caching is not False:
        yield Finding(
            "max_num_batched_tokens",
            Severity.NOTE,
            f"{chunk} is no multiple of the block ({block} tokens), which costs no cache hits: a "
            "block half filled by one chunk is kept once the next one fills it",
            "V1: 0.8 and newer; not models with Mamba layers, nor every plugin",
            "leave it, or take a multiple if 0.6-era engines run the same configuration",
            "measured on 0.32.0; vllm/v1/core/sched/scheduler.py; cached_prefix_tokens",
        )


def _in_align_mode(version: Version, chunk: int, block: int) -> Iterator[Finding]:
    first, beyond = _BLOCK_FITS_CHUNK
    if chunk < block and first <= version < beyond:
        yield Finding(
            "max_num_batched_tokens",
            Severity.ERROR,
            f"{chunk} is below block_size ({block}) with mamba-cache-mode align, so vLLM does not "
            "start",
            "0.20 to 0.24",
            f"max_num_batched_tokens: {block}",
            "vllm/config/vllm.py in 0.20.2 and 0.24.0",
        )
    elif chunk % block:
        yield Finding(
            "max_num_batched_tokens",
            Severity.NOTE,
            f"{chunk} is no multiple of block_size ({block}) with mamba-cache-mode align: chunks "
            "are cut back to block boundaries",
            "models with Mamba layers, 0.16 and newer",
            f"a multiple of {block}",
            "vllm/v1/core/sched/scheduler.py in 0.32.0, _mamba_block_aligned_split",
        )
