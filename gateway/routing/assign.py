"""Weighted rendezvous hashing: which of several names a session belongs to.

Every name draws u in (0, 1) from a hash of (salt, session, name), and the largest -w/ln(u) wins.
No table is kept: the same arguments give the same answer in every process and after every
restart. A session moves only when another name's weight rises relative to its own; with two
names a change of weights therefore moves exactly the sessions it must, all in one direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from math import log

SESSION_BYTES = 8
_CELLS = 2.0**52


def salt_of(*parts: str) -> bytes:
    """The salt of one independent split: 16 bytes."""
    return blake2b("\0".join(parts).encode(), digest_size=16).digest()


def draw(salt: bytes, session: int, name: str) -> int:
    """The 64 random bits of a name for a session.

    Args:
        session: unsigned, 64 bits.

    Raises:
        OverflowError: the session is negative or longer than 64 bits.
    """
    data = salt + session.to_bytes(SESSION_BYTES, "little") + name.encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def unit_interval(bits: int) -> float:
    """64 random bits as a number strictly between 0 and 1.

    52 bits and a half are what a double holds exactly below 1: with more, the topmost values
    round to 1.0, whose logarithm is zero.
    """
    return ((bits >> 12) + 0.5) / _CELLS


def choose(salt: bytes, session: int, weights: Sequence[tuple[str, float]]) -> str:
    """The name a session belongs to; a name of weight zero is never chosen.

    Raises:
        ValueError: no weight is above zero.
    """
    winner = None
    best = -1.0
    for name, weight in weights:
        if weight <= 0.0:
            continue
        score = -weight / log(unit_interval(draw(salt, session, name)))
        if score > best:
            winner, best = name, score
    if winner is None:
        raise ValueError("no weight is above zero")
    return winner
