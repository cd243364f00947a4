"""A tokenizer without a vocabulary: reversible, fast, and about as dense as a real one.

ASCII text is cut from the left into pieces of four characters, the usual rule of thumb for
English; each other character is a token of its own, about right for Chinese. A piece's id is its
four bytes, filled up with 0xff, so that a text that begins with another one begins with its
tokens, but for a last piece that was not full.

Ids: below 2³¹ an ASCII piece; from `CHARACTER` on the code point of a character; from `SPECIAL`
on the marks of the chat template. None of them is an id of a real model's tokenizer.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterable

CHARACTER = 1 << 31
SPECIAL = 3 << 30
SPECIALS = ("<|begin|>", "<|start|>", "<|message|>", "<|end|>")
BEGIN, START, MESSAGE, END = range(SPECIAL, SPECIAL + len(SPECIALS))

_PIECE = 4
_FILL = b"\xff"
_RUNS = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]+")
_LAST_CODE_POINT = 0x10FFFF


def encode(text: str) -> array[int]:
    """The token ids of `text`; marks of the chat template in it are plain text."""
    tokens = array("I")
    for run in _RUNS.findall(text):
        if run.isascii():
            tokens.extend(_pieces(run.encode()))
        else:
            tokens.extend(array("I", [CHARACTER | ord(character) for character in run]))
    return tokens


def decode(tokens: Iterable[int]) -> str:
    """The text of `tokens`.

    Raises:
        ValueError: an id that no text has.
    """
    return "".join(map(_text_of, tokens))


def conversation(messages: Iterable[tuple[str, str]], *, generate: bool = True) -> array[int]:
    """The prompt of a chat: each message as start, role, message, content, end.

    An answer becomes the same tokens when it comes back as a message of the next turn, so what
    was cached of it is hit.

    Args:
        messages: role and content of each.
        generate: whether the head of the answer follows.
    """
    tokens = array("I", [BEGIN])
    for role, content in messages:
        tokens.extend(_head(role))
        tokens.extend(encode(content))
        tokens.append(END)
    if generate:
        tokens.extend(_head("assistant"))
    return tokens


def _head(role: str) -> array[int]:
    head = array("I", [START])
    head.extend(encode(role))
    head.append(MESSAGE)
    return head


def _pieces(text: bytes) -> array[int]:
    found = array("I")
    found.frombytes(text + _FILL * (-len(text) % _PIECE))
    if sys.byteorder == "little":
        found.byteswap()
    return found


def _text_of(token: int) -> str:
    if 0 <= token < CHARACTER:
        piece = token.to_bytes(_PIECE, "big").rstrip(_FILL)
        if piece and piece.isascii():
            return piece.decode()
    elif CHARACTER <= token <= CHARACTER | _LAST_CODE_POINT:
        return chr(token ^ CHARACTER)
    elif token in range(BEGIN, END + 1):
        return SPECIALS[token - BEGIN]
    raise ValueError(f"token id {token} is out of vocabulary")
