"""Whether an engine configuration does what its chunk settings promise, in a version of vLLM.

Sources name files of vLLM in the release in which they were read.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from gateway.vllm.alignment import alignment
from gateway.vllm.config import EngineConfig
from gateway.vllm.findings import EVERY_VERSION, Finding, Severity
from gateway.vllm.flags import Fate, canonical, flag, release_for
from gateway.vllm.launch import absence
from gateway.vllm.version import NEWEST, Version, runs_v1

SMALL_CHUNK = 128
"""Tokens of a step below which a prompt takes so many steps that its first token comes late."""

PROMPT = 2000
"""Tokens of the prompt that says how many."""

FULL_MEMORY = 0.95
"""The part of a GPU's memory above which nothing is left for what vLLM does not measure."""

DEFAULT_SEQUENCES = 256
MOST_SEQUENCES = 1024
"""What `max_num_seqs` is by default: the latter on GPUs of 70 GB and more, in V1."""

_BOUNDS_SEQUENCES = Version.parse("0.10")
_ALWAYS_CHUNKS = Version.parse("0.12")
_CHECKS_THRESHOLD = Version.parse("0.28")

_SCHEDULER_CONFIG = "vllm/config/scheduler.py in 0.32.0, verify_max_model_len"
_EXPERIENCE = "experience with 0.6-era engines on H100, Llama 3 70B"
_ARG_UTILS = "vllm/engine/arg_utils.py"


def check(
    config: EngineConfig, version: Version | None = None, *, complete: bool = True
) -> list[Finding]:
    """Everything worth knowing, errors first; for the version given, else the configuration's.

    Without either it is checked for the newest version known.

    Args:
        complete: whether what is not stated is left to vLLM, rather than just not known.
    """
    target = version or config.engine_version or NEWEST
    found = [
        *_version(target),
        *_refused(config, target),
        *(_sequences(config, target) if complete else ()),
        *alignment(config, target),
        *_chunk(config, target),
        *_memory(config),
        *_prefix(config, target, complete),
        *_flags(config, target),
    ]
    order = list(Severity)
    return sorted(found, key=lambda one: order.index(one.severity))


def _version(version: Version) -> Iterator[Finding]:
    if (version.major, version.minor) > (NEWEST.major, NEWEST.minor):
        yield Finding(
            "engine_version",
            Severity.NOTE,
            f"{version} is newer than {NEWEST}, the newest this gateway knows: flags and checks "
            "are those of that one",
            f"newer than {NEWEST}",
            "compare with vllm serve --help=all",
            f"{_ARG_UTILS} in 0.32.0",
        )


def _refused(config: EngineConfig, version: Version) -> Iterator[Finding]:
    """What the engine itself refuses at start."""
    chunk, context = config.max_num_batched_tokens, config.max_model_len
    if chunk is not None and config.max_num_seqs is not None and chunk < config.max_num_seqs:
        yield Finding(
            "max_num_batched_tokens",
            Severity.ERROR,
            f"{chunk} is below max_num_seqs ({config.max_num_seqs}), so vLLM does not start",
            EVERY_VERSION,
            f"max_num_seqs: {chunk}, or a larger chunk",
            _SCHEDULER_CONFIG,
        )
    unchunked = not config.chunks_prefill(version)
    if unchunked and chunk is not None and context is not None and chunk < context:
        yield Finding(
            "max_num_batched_tokens",
            Severity.ERROR,
            f"{chunk} is below max_model_len ({context}) while chunked prefill is off, so vLLM "
            "does not start",
            EVERY_VERSION if config.chunked_prefill is False else "V0, where it is off by default",
            f"chunked_prefill: true, or max_num_batched_tokens: {context}",
            _SCHEDULER_CONFIG,
        )
    elif unchunked and version >= _ALWAYS_CHUNKS:
        yield Finding(
            "chunked_prefill",
            Severity.WARNING,
            "is off, which vLLM does not officially support for models that generate text: it "
            "may crash or answer wrongly",
            "0.12 and newer",
            "leave it on, with a chunk of max_model_len",
            f"{_ARG_UTILS} in 0.32.0, _set_default_chunked_prefill_and_prefix_caching_args",
        )
    threshold = config.long_prefill_token_threshold or 0
    if context is not None and threshold > context and version >= _CHECKS_THRESHOLD:
        yield Finding(
            "long_prefill_token_threshold",
            Severity.ERROR,
            f"{threshold} is above max_model_len ({context}), so vLLM does not start",
            "0.28 and newer; before, with max-num-partial-prefills",
            f"at most {context}, or 0 for no limit",
            _SCHEDULER_CONFIG,
        )


def _sequences(config: EngineConfig, version: Version) -> Iterator[Finding]:
    """What follows where `max_num_seqs` is left to vLLM."""
    chunk = config.max_num_batched_tokens
    if chunk is None or config.max_num_seqs is not None:
        return
    bounded = runs_v1(version, config.env) and version >= _BOUNDS_SEQUENCES
    if not bounded and chunk < DEFAULT_SEQUENCES:
        yield Finding(
            "max_num_seqs",
            Severity.ERROR,
            f"is not stated, and {DEFAULT_SEQUENCES} or more by default, which is above the chunk "
            f"({chunk}), so vLLM does not start",
            "V0, and V1 before 0.10",
            f"max_num_seqs: {chunk}, or less",
            f"{_ARG_UTILS} in 0.6.3.post1 to 0.9.2",
        )
    elif bounded and chunk < MOST_SEQUENCES:
        yield Finding(
            "max_num_seqs",
            Severity.NOTE,
            f"is not stated, so it is {DEFAULT_SEQUENCES} to {MOST_SEQUENCES} by the GPU, but at "
            f"most the chunk ({chunk}): arms with other chunks may differ in it, too",
            "V1, 0.10 and newer",
            "the same max_num_seqs in every arm",
            f"{_ARG_UTILS} in 0.32.0, _set_default_max_num_seqs_and_batched_tokens_args",
        )


def _chunk(config: EngineConfig, version: Version) -> Iterator[Finding]:
    chunk, context = config.max_num_batched_tokens, config.max_model_len
    if chunk is None or not config.chunks_prefill(version):
        return
    if chunk < SMALL_CHUNK:
        yield Finding(
            "max_num_batched_tokens",
            Severity.WARNING,
            f"{chunk} is below {SMALL_CHUNK}, so a prompt of {PROMPT} tokens takes at least "
            f"{ceil(PROMPT / chunk)} steps to its first token",
            EVERY_VERSION,
            "512, then 256 and 1024 beside it",
            f"{_EXPERIENCE}; the CPU build of 0.32.0: P50 1096 ms at 64, 286 ms at 512",
        )
    if context is not None and chunk >= context:
        yield Finding(
            "max_num_batched_tokens",
            Severity.WARNING,
            f"{chunk} is not below max_model_len ({context}), so no prompt is ever cut into chunks "
            "by it, only by what else runs in the same step",
            EVERY_VERSION,
            "512, then 256 and 1024 beside it",
            "chunks are min(remaining tokens, budget): vllm/v1/core/sched/scheduler.py in 0.32.0",
        )


def _memory(config: EngineConfig) -> Iterator[Finding]:
    share = config.gpu_memory_utilization
    if share is not None and share > FULL_MEMORY:
        yield Finding(
            "gpu_memory_utilization",
            Severity.WARNING,
            f"{share:g} is above {FULL_MEMORY}, which leaves no room for what is not measured at "
            "start: memory runs out, and first tokens become uneven",
            EVERY_VERSION,
            "0.9",
            f"{_EXPERIENCE}; the default is 0.9 up to 0.16, 0.92 in 0.20 and newer",
        )


def _prefix(config: EngineConfig, version: Version, complete: bool) -> Iterator[Finding]:
    by_default = config.prefix_caching is None and complete and not runs_v1(version, config.env)
    if config.prefix_caching is False or by_default:
        how = "is off" if config.prefix_caching is False else "is not on, and off by default in V0"
        yield Finding(
            "prefix_caching",
            Severity.WARNING,
            f"{how}, so prompts that begin alike are computed anew each time",
            EVERY_VERSION if config.prefix_caching is False else "V0: 0.6, 0.7",
            "prefix_caching: true",
            f"{_ARG_UTILS} in 0.6.3.post1 (off by default) and 0.32.0 (on)",
        )
        return
    shared, block = config.shared_prompt_tokens, config.block_size
    if shared is not None and block is not None and shared < block:
        yield Finding(
            "shared_prompt_tokens",
            Severity.WARNING,
            f"{shared} is less than a block of {block}, so the cache never finds what prompts "
            "share",
            EVERY_VERSION,
            f"block_size: 16, or a shared beginning of {block} tokens and more",
            "cached_prefix_tokens; vllm/v1/core/kv_cache_manager.py in 0.32.0",
        )


def _flags(config: EngineConfig, version: Version) -> Iterator[Finding]:
    for name in config.flags:
        found = flag(name, version)
        if found.fate is Fate.PRESENT and found.name == canonical(name):
            continue
        path = f"flags.{name}"
        source = f"the flags of {release_for(version)}"
        if found.fate is Fate.UNKNOWN and version > NEWEST:
            yield Finding(
                path,
                Severity.WARNING,
                f"is no flag of {NEWEST}, the newest this gateway knows: {version} may have it",
                f"newer than {NEWEST}",
                found.instead or "compare with vllm serve --help=all",
                source,
            )
            continue
        if found.fate is Fate.PRESENT:
            yield Finding(
                path,
                Severity.WARNING,
                f"is no flag of any version, but {found.name} is",
                EVERY_VERSION,
                f"scheduling_policy, or {found.name}",
                source,
            )
            continue
        yield Finding(
            path,
            Severity.ERROR,
            f"vllm serve ends with status 2 on it: {absence(found, version)}",
            str(version),
            found.instead if found.fate is Fate.UNKNOWN and found.instead else "leave it out",
            source,
        )
