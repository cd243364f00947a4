"""Write a tiny random Llama, which takes 20 MB and no download: `python make_model.py FOLDER`.

Four layers, a hidden size of 256, a byte-level vocabulary of 4096 trained on the standard
library's own source. It speaks nonsense, but an engine serves it like any other model. Runs in
the engine's own environment, on its own: nothing of the gateway is there.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

SEED = 20_240_601
VOCABULARY = 4096
CONTEXT = 131_072
SPECIAL = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"]

TEMPLATE = """\
{%- if tools %}<|system|>Tools, to be called as <tool_call>{"name": …, "arguments": …}</tool_call>:
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}<|end|>
{%- endif %}
{%- for message in messages %}<|{{ message.role }}|>
{%- if message.content is string %}{{ message.content }}
{%- else %}{% for part in message.content or [] %}{{ part.text }}{% endfor %}
{%- endif %}
{%- for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>
{%- endfor %}<|end|>
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
"""Tools first, then the messages in their order, of whatever role."""


def sources() -> Iterator[str]:
    """The standard library's own modules, in one order wherever they lie."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        yield path.read_text(encoding="utf-8", errors="replace")


def tokenizer() -> PreTrainedTokenizerFast:
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(sources(), vocab_size=VOCABULARY, special_tokens=SPECIAL)
    return PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer,
        eos_token=SPECIAL[0],
        additional_special_tokens=SPECIAL[1:],
        model_max_length=CONTEXT,
        chat_template=TEMPLATE,
    )


def awkward(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """The tokens that are nothing but white space, or a piece of a character.

    An engine sends no text for a piece, and there is no first token without text.
    """
    texts = [tokenizer.decode([token]) for token in range(VOCABULARY)]
    return [n for n, text in enumerate(texts) if text.isspace() or "\ufffd" in text]


def model(never: list[int]) -> LlamaForCausalLM:
    """A random model that says these tokens only where a grammar allows no other.

    Where a grammar allows white space, as within a tool call, it allows any amount, and a model
    that knows nothing would fill its calls with blanks.
    """
    torch.manual_seed(SEED)
    made = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=256,
            intermediate_size=688,
            num_hidden_layers=4,
            num_attention_heads=8,
            num_key_value_heads=4,
            max_position_embeddings=CONTEXT,
            bos_token_id=None,
            eos_token_id=0,
            tie_word_embeddings=False,
        )
    )
    with torch.no_grad():
        # One hidden dimension is the same for every token and no layer reads or changes it: a
        # constant, which the output layer, without a bias of its own, can weigh.
        made.model.embed_tokens.weight[:, 0] = 0.5
        for layer in made.model.layers:
            attention, mlp = layer.self_attn, layer.mlp
            for reads in (attention.q_proj, attention.k_proj, attention.v_proj):
                reads.weight[:, 0] = 0
            for reads in (mlp.gate_proj, mlp.up_proj):
                reads.weight[:, 0] = 0
            for writes in (attention.o_proj, mlp.down_proj):
                writes.weight[0] = 0
        made.lm_head.weight[:, 0] = 0
        made.lm_head.weight[never, 0] = -4
    return made


if __name__ == "__main__":
    logging.disable_progress_bar()
    folder = Path(sys.argv[1])
    trained = tokenizer()
    trained.save_pretrained(folder)
    model(awkward(trained)).save_pretrained(folder)
