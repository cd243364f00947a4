from __future__ import annotations

from typing import Any

import pytest

from gateway.simulator.config import EngineConfig


def test_a_presets_machine_fills_in_what_is_not_said() -> None:
    config = EngineConfig(preset="cpu-tiny")
    assert (config.tokens_per_block, config.blocks, config.context) == (128, 1024, 16_384)


def test_the_context_is_no_longer_than_the_cache() -> None:
    assert EngineConfig(num_gpu_blocks=100).context == 1600


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"preset": "abacus"}, "preset 'abacus' is unknown; there are h100-llama-70b, cpu-tiny"),
        (
            {"max_num_batched_tokens": 64},
            r"max_num_batched_tokens \(64\) must be greater than or equal to max_num_seqs \(128\)",
        ),
        ({"speed": 0.0}, "speed must be above 0"),
        ({"block_size": 0}, "block_size must be above 0"),
        ({"num_gpu_blocks": 0}, "num_gpu_blocks must be above 0"),
        ({"num_gpu_blocks": 10, "max_model_len": 161}, r"holds 160 tokens, fewer than .* \(161\)"),
    ],
)
def test_what_no_engine_would_start_with_is_refused(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        EngineConfig(**flags)
