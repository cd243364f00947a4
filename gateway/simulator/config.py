"""How a simulated engine is started."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.simulator.latency import StepLatency
from gateway.simulator.presets import PRESETS, Preset


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """The flags of a vLLM server that matter here, and what the simulation adds.

    Attributes:
        model: the model id it serves.
        preset: which machine is simulated, a name of `PRESETS`.
        latency: how long its steps take; None for the preset's.
        max_num_batched_tokens: the chunk size: tokens computed in a step, at most.
        max_num_seqs: sequences that run at once, at most.
        block_size: tokens in a block of the KV cache; None for the preset's.
        num_gpu_blocks: blocks in all; None for what the preset's memory holds.
        max_model_len: tokens of prompt and answer together; None for the preset's.
        prefix_caching: whether blocks are reused between requests.
        long_prefill_token_threshold: the longest chunk of one prompt; 0 for no limit.
        speed: simulated seconds in a real one.
        api_key: what clients must send as a Bearer token; None lets everyone in.
        answer_tokens: tokens after which the simulated model ends its answer by itself.
        prompt_tokens_details: whether replies state cached tokens.

    Raises:
        ValueError: on values no engine would start with, in vLLM's words where it has some.
    """

    model: str = "simulated"
    preset: str = "h100-llama-70b"
    latency: StepLatency | None = None
    max_num_batched_tokens: int = 2048
    max_num_seqs: int = 128
    block_size: int | None = None
    num_gpu_blocks: int | None = None
    max_model_len: int | None = None
    prefix_caching: bool = True
    long_prefill_token_threshold: int = 0
    speed: float = 1.0
    api_key: str | None = None
    answer_tokens: int = 128
    prompt_tokens_details: bool = True

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise ValueError(f"preset {self.preset!r} is unknown; there are {', '.join(PRESETS)}")
        for name, value in (
            ("max_num_batched_tokens", self.max_num_batched_tokens),
            ("max_num_seqs", self.max_num_seqs),
            ("block_size", self.tokens_per_block),
            ("num_gpu_blocks", self.blocks),
            ("max_model_len", self.context),
            ("answer_tokens", self.answer_tokens),
            ("speed", self.speed),
        ):
            if not value > 0:
                raise ValueError(f"{name} must be above 0")
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) must be greater than or "
                f"equal to max_num_seqs ({self.max_num_seqs})."
            )
        if self.blocks * self.tokens_per_block < self.context:
            raise ValueError(
                f"the KV cache holds {self.blocks * self.tokens_per_block} tokens, fewer than "
                f"max_model_len ({self.context}): give it more blocks or lower max_model_len"
            )

    @property
    def machine(self) -> Preset:
        preset = PRESETS[self.preset]
        return preset if self.latency is None else replace(preset, latency=self.latency)

    @property
    def tokens_per_block(self) -> int:
        return self.machine.block_size if self.block_size is None else self.block_size

    @property
    def blocks(self) -> int:
        if self.num_gpu_blocks is not None:
            return self.num_gpu_blocks
        return self.machine.kv_cache_tokens // max(1, self.tokens_per_block)

    @property
    def context(self) -> int:
        """Tokens of prompt and answer together, at most; what fits in the blocks by default."""
        if self.max_model_len is not None:
            return self.max_model_len
        return min(self.machine.max_model_len, self.blocks * self.tokens_per_block)
