"""What is recorded of a translated answer: metrics, the access log, and what a key is charged."""

from __future__ import annotations

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.records import NoToken, Outcome
from tests.exchange.test_translation import translated
from tests.support.apis import CHAT, Dialect
from tests.support.running import KEY
from tests.support.site import Site, answers, chat_only, hangs_up, refuses, silent, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def totals(at: Site, *names: str) -> list[dict[tuple[str, ...], float]]:
    """The samples of each metric by (api, outcome or reason), summed over everything else."""
    page = (await at.client.get("/metrics")).text
    found: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in names}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if (sums := found.get(sample.name)) is not None:
                labels = sample.labels
                key = labels.get("api", ""), labels.get("outcome", labels.get("reason", ""))
                sums[key] = sums.get(key, 0) + sample.value
    return list(found.values())


ENDINGS = {
    "ok": (chat_only(streams(*CHAT.frames)), Outcome.OK, None),
    "empty": (
        chat_only(streams(*CHAT.opening, *CHAT.ending)),
        Outcome.OK,
        NoToken.EMPTY,
    ),
    "refused": (chat_only(refuses("400 Bad Request")), Outcome.REJECTED, NoToken.REJECTED),
    "failed": (
        chat_only(refuses("503 Service Unavailable")),
        Outcome.BACKEND_ERROR,
        NoToken.BACKEND_ERROR,
    ),
    "cut early": (
        chat_only(streams(*CHAT.opening, then=hangs_up)),
        Outcome.BACKEND_ERROR,
        NoToken.BACKEND_ERROR,
    ),
    "cut late": (
        chat_only(streams(*CHAT.opening, *CHAT.tokens, then=hangs_up)),
        Outcome.BACKEND_ERROR,
        None,
    ),
    "too slow": (chat_only(silent), Outcome.TIMEOUT, NoToken.TIMEOUT),
}


@pytest.mark.parametrize("ending", ENDINGS)
@translated
async def test_each_end_is_counted_once(at: Site, dialect: Dialect, ending: str) -> None:
    script, outcome, reason = ENDINGS[ending]
    at.configure(timeouts={"first_token": 0.2 if outcome is Outcome.TIMEOUT else 5})
    at.play(script)
    names = (
        "gateway_requests_total",
        "gateway_no_first_token_total",
        "gateway_time_to_first_token_seconds_count",
    )
    before = await totals(at, *names)
    await at.ask(dialect)
    record = await at.record()
    assert (record.api, record.outcome, record.no_token) == (dialect.api, outcome, reason)
    assert record.backend_api == "chat"
    after = await totals(at, *names)
    new = [
        {key: value - old.get(key, 0) for key, value in now.items() if value != old.get(key, 0)}
        for old, now in zip(before, after, strict=True)
    ]
    timed = record.timeline.first_token is not None
    assert new == [
        {(dialect.api.value, outcome.value): 1},
        {("", reason.value): 1} if reason else {},
        {(dialect.api.value, ""): 1} if timed else {},
    ]
    assert timed is (reason is None)


@translated
async def test_the_marks_stand_in_order(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(streams(*CHAT.frames, pause=0.05)))
    await at.ask(dialect)
    record = await at.record()
    one = record.timeline
    asked = [one.received, one.body_complete, one.admitted, one.sent, one.upstream_headers]
    marks = [*asked, one.first_byte, one.first_token, one.last_token, one.done]
    known = [mark for mark in marks if mark is not None]
    assert len(known) == 9 and known == sorted(known)
    # The role frame comes first and carries nothing.
    assert known[6] - known[5] > 0.03 and known[7] - known[6] > 0.03
    assert len(record.gaps) == 1


@translated
async def test_the_key_is_charged_what_the_engine_counted(at: Site, dialect: Dialect) -> None:
    at.play(chat_only(answers(CHAT)))
    at.configure(keys=[{"name": "dev", "key": KEY, "tokens_per_minute": 60}])
    await at.ask(dialect)
    await at.ask(dialect, stream=False)
    limited = await at.ask(dialect, stream=False)
    left = [value for name, value in limited.headers.items() if name.endswith("remaining-tokens")]
    assert 60 - 2 * 9 <= int(left[0]) <= 60 - 2 * 9 + 3  # one comes back each second


@translated
async def test_no_content_is_logged(at: Site, dialect: Dialect) -> None:
    said = "a very secret answer"
    frame = CHAT.tokens[0].replace(b'"a"', json.dumps(said).encode())
    at.play(chat_only(streams(*CHAT.opening, frame, *CHAT.ending)))
    name = "messages" if "messages" in dialect.request else "input"
    asked = "a very secret question"
    content = [{"role": "user", "content": asked}] if name == "messages" else asked
    response = await at.client.post(dialect.path, json={**dialect.streamed, name: content})
    assert said in response.text
    line = json.dumps(await at.line(await at.record()))
    assert "secret" not in line and '"backend_api": "chat"' in line
