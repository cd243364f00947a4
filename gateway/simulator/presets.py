"""Engines to simulate, as step times and memory.

`h100-llama-70b` is fitted to the three P90 times of the article the project comes from (vLLM
0.6, H100, Llama-3-70B at tensor parallel 4): 180 ms without chunking, 195 ms at chunk 512, 420 ms
at chunk 64, under its load of 200 requests, 32 at a time, that share a prompt of about 1,600
tokens, differ in a short question and generate one token. The load starts on an empty cache, as
a freshly started engine has it, so the first 32 wait for the shared prompt to be computed; they
are more than a tenth, and P90 is theirs. `per_token` says about 13,500 tokens/s of prefill and
`per_pair` follows from the model's attention (4 · 80 layers · 8,192 dimensions, at about two
fifths of four H100s' peak). What it cannot claim: to predict a real H100. Three numbers of one
unrepeated measurement fix two parameters; the split of a step's time into a constant and a part
for each token is a guess that fits them; vLLM has since changed its scheduler. The article's hit
rates (94 % and 52 %) are not reproduced on purpose: on vLLM V1 the chunk size does not change
hits.

`cpu-tiny` is what `gateway sim --fit` makes of vLLM 0.32 on two CPU cores with a random 4-layer
model (1,800 requests, 6 at a time, prompts of 80 to 2,650 tokens, chunks of 64 to 2,048; recorded
in benchmarks/engine/results). Cold prompts of the recorded sweep take it
0.6 to 1.2 times what they took; cached ones, whose time the tokenizer and HTTP make, as little as
0.2 times.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.simulator.latency import StepLatency


@dataclass(frozen=True, slots=True)
class Preset:
    """One machine with one model.

    Attributes:
        latency: how long a step takes.
        kv_cache_tokens: tokens the KV cache holds.
        max_model_len: tokens of prompt and answer together.
        block_size: vLLM's default on that machine.
    """

    latency: StepLatency
    kv_cache_tokens: int
    max_model_len: int
    block_size: int


PRESETS = {
    "h100-llama-70b": Preset(
        # 4 · 80 GB · 0.9 less 140 GB of weights, at 320 KiB a token.
        StepLatency(base=0.009, per_token=0.000074, per_pair=1.6e-9),
        kv_cache_tokens=448_000,
        max_model_len=131_072,
        block_size=16,
    ),
    "cpu-tiny": Preset(
        StepLatency(base=0.0066, per_token=8.49e-5, per_pair=3.78e-8),
        kv_cache_tokens=131_072,
        max_model_len=16_384,
        block_size=128,
    ),
}
