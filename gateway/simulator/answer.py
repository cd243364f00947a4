"""What a simulated engine answers: the same text for everyone, over and over."""

from __future__ import annotations

from gateway.simulator import tokenizer
from gateway.simulator.sequence import Sequence

# A multiple of four characters, so that a piece of it is tokenized as it was generated.
TEXT = "This text was made up by a simulated engine and carries no meaning. "
TOKENS = tokenizer.encode(TEXT)


def token(sequence: Sequence) -> int:
    """The next token of a sequence."""
    return TOKENS[sequence.generated % len(TOKENS)]
