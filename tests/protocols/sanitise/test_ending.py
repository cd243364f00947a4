"""Streams that stop after their finish reason get the event that ends them."""

from __future__ import annotations

import pytest

from gateway.protocols.sanitise.ending import missing_end
from gateway.protocols.sse import Reader
from gateway.protocols.tokens import Observer
from gateway.records import Api
from tests.support.apis import CHAT, COMPLETIONS, MESSAGES, Dialect


@pytest.mark.parametrize("dialect", [CHAT, COMPLETIONS, MESSAGES], ids=lambda one: one.api)
def test_with_it_a_stream_is_complete(dialect: Dialect) -> None:
    observer = Observer(dialect.api, None)
    *events, _ = Reader().feed(b"".join(dialect.frames))
    seen = [observer.feed(event) for event in events]
    assert any(one.finished for one in seen), "the answer itself is whole"
    assert not any(one.terminal for one in seen)
    (last,) = Reader().feed(missing_end(dialect.api))
    assert observer.feed(last).terminal


@pytest.mark.parametrize("api", [Api.RESPONSES, Api.EMBEDDINGS, Api.OTHER])
def test_nothing_stands_in_for_an_answer_that_did_not_come(api: Api) -> None:
    assert missing_end(api) == b""
