"""Signs of life in a stream: the SDKs pass over them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.records import Api, Outcome
from tests.sdks.clients import chat_only, in_thread, text_of
from tests.support.apis import CHAT, DIALECTS, MESSAGES, RESPONSES, Dialect
from tests.support.scripted import chunk
from tests.support.site import Site, answers, says, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
@pytest.mark.parametrize("where", ["before the first event", "between two tokens"])
async def test_signs_of_life_are_nothing_to_the_sdks(
    at: Site, dialect: Dialect, where: str
) -> None:
    at.configure(keepalive_interval=0.05)
    if where == "before the first event":
        at.play(answers(dialect, delay=0.2))
    else:
        rest = says(*map(chunk, [*dialect.tokens[1:], *dialect.ending, b""]))

        async def later(*arguments: Any) -> None:
            await asyncio.sleep(0.2)
            await rest(*arguments)

        at.play(streams(*dialect.opening, dialect.tokens[0], then=later))
    assert await in_thread(text_of, at, dialect) == "ab"
    record = await at.record()
    assert record.outcome is Outcome.OK
    before = where == "before the first event"
    sign = dialect.first_keepalive if before else dialect.keepalive
    withheld = dialect.ending[-2] if dialect.done else b""  # the usage that was not asked for
    signs, odd = divmod(record.bytes_out - len(b"".join(dialect.frames)) + len(withheld), len(sign))
    assert odd == 0 and signs >= 2, "there was no sign of life to pass over"


@pytest.mark.parametrize("dialect", [MESSAGES, RESPONSES], ids=lambda one: one.api)
async def test_signs_of_life_in_a_translated_answer(at: Site, dialect: Dialect) -> None:
    chat_only(at, keepalive_interval=0.05)
    at.play(streams(*CHAT.frames, delay=0.2, pause=0.1))
    assert await in_thread(text_of, at, dialect) == "ab"
    record = await at.record()
    assert (record.outcome, record.backend_api) == (Outcome.OK, Api.CHAT)
