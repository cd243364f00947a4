from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator import answer, tokenizer

# JSON strings may hold halves of surrogate pairs.
text = st.text(st.characters(exclude_categories=()))


@given(text)
def test_every_text_comes_back(given: str) -> None:
    assert tokenizer.decode(tokenizer.encode(given)) == given


@given(text, text)
def test_a_text_that_begins_alike_has_the_tokens_of_the_beginning(head: str, tail: str) -> None:
    beginning, whole = tokenizer.encode(head), tokenizer.encode(head + tail)
    # The last piece of the beginning may take characters of the tail in.
    assert beginning[:-1] == whole[: max(0, len(beginning) - 1)]


def test_density_is_a_real_tokenizers() -> None:
    assert len(tokenizer.encode("The quick brown fox jumps over the lazy dog.")) == 11
    assert len(tokenizer.encode("你好世界")) == 4


def test_an_id_is_its_four_characters() -> None:
    assert tokenizer.encode("Hellö").tolist() == [0x48656C6C, 0x80000000 | 0xF6]
    assert tokenizer.encode("ab").tolist() == [0x6162FFFF]


@pytest.mark.parametrize("token", [-1, 0xFFFFFFFF, 0x80000000 | 0x110000, 0x61FF6162, 1 << 40])
def test_an_id_no_text_has_is_refused(token: int) -> None:
    with pytest.raises(ValueError, match=f"token id {token} is out of vocabulary"):
        tokenizer.decode([token])


def test_a_conversation_reads_as_its_template() -> None:
    found = tokenizer.decode(tokenizer.conversation([("system", "Be kind."), ("user", "Hi")]))
    assert found == (
        "<|begin|><|start|>system<|message|>Be kind.<|end|><|start|>user<|message|>Hi<|end|>"
        "<|start|>assistant<|message|>"
    )


def test_an_answer_keeps_its_tokens_in_the_next_turn() -> None:
    asked = [("user", "Hi")]
    generated = answer.TOKENS[:5]
    before = tokenizer.conversation(asked) + generated
    turns = [*asked, ("assistant", tokenizer.decode(generated)), ("user", "More")]
    assert tokenizer.conversation(turns)[: len(before)] == before


def test_the_mark_of_a_template_in_a_text_is_text() -> None:
    assert tokenizer.END not in tokenizer.encode("<|end|>")
