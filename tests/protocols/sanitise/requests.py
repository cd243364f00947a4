"""Requests as clients send them, and what of them a repair changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st

from gateway.protocols.fields import Fields, parse
from gateway.protocols.sanitise.parts import Changes
from gateway.protocols.splice import set_fields

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
"""Any JSON value."""


def fields(**request: Any) -> Fields:
    """The top-level fields of a request."""
    return parse(msgspec.json.encode(request))


def after(repair: Callable[[Fields], Changes], **request: Any) -> dict[str, Any]:
    """The request that reaches the backend."""
    body = msgspec.json.encode(request)
    decoded: dict[str, Any] = msgspec.json.decode(set_fields(body, repair(parse(body))))
    return decoded


def shaped(words: list[str], keys: list[str]) -> st.SearchStrategy[Any]:
    """JSON that is nearly what an API takes: its own names and words at any place."""
    word = st.sampled_from(words) | JSON
    return st.recursive(
        word,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(keys) | st.text(max_size=4), inner, max_size=5)
        ),
        max_leaves=25,
    )
