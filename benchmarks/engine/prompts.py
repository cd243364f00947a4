"""Prompts of an exact length, as token ids: what they say does not matter to a random model."""

from __future__ import annotations

import random

VOCABULARY = 4096
SPECIAL = 5
"""The first ids, which mean something to the tokenizer."""


def prompt(seed: str, length: int) -> list[int]:
    """Always the same tokens for a seed, and no common beginning with another seed's."""
    chosen = random.Random(seed)
    return [chosen.randrange(SPECIAL, VOCABULARY) for _ in range(length)]
