"""Codex tries again as often as the code of a failed stream tells it to: six times, or never."""

from __future__ import annotations

from tests.real_clients import rows
from tests.real_clients.agents import Codex
from tests.real_clients.common import (
    ANSWER,
    BROKEN,
    CUT,
    FULL,
    REFUSED,
    TOO_LONG,
    WRONG_KEY,
    answers,
    fails,
    keeps_its_arm,
    limited,
    recovers,
    sends_a_long_prompt,
    uses_a_tool,
    waits_for_its_limit,
    waits_for_the_first_token,
)
from tests.real_clients.driving import NATIVE, Scenarios
from tests.real_clients.rows import Ends, goes_through, replays_broken_arguments

agent = Scenarios(Codex())

test_answer = answers(agent, session="session-id")
test_tool = uses_a_tool(agent)
test_conversation = keeps_its_arm(agent)
test_slow = waits_for_the_first_token(agent)
test_long = sends_a_long_prompt(agent)

test_wrong_key = fails(
    agent,
    "a wrong key",
    [ANSWER],
    requests=6,
    says="is not one of this gateway's",
    key=WRONG_KEY,
)
test_unknown_model = fails(
    agent,
    "a model that is not there",
    [ANSWER],
    requests=1,
    says="There is no model `nope` here",
    model="nope",
)
test_limit = waits_for_its_limit(agent)
test_quota = fails(
    agent,
    "a key's limit, used up for long",
    [agent.agent.shell("printf hello"), ANSWER],
    requests=2,
    says="Quota exceeded",
    patient=True,
    **limited(1),
)
test_refused = fails(
    agent,
    "400 from the engine: it refuses the request",
    [REFUSED],
    requests=1,
    says="tool_choice is not supported here",
)
test_too_long = fails(
    agent,
    "a prompt that is too long",
    [TOO_LONG],
    requests=1,
    says="ran out of room in the model's context window",
)
test_broken = fails(
    agent,
    "500 from the engine, every time",
    [BROKEN],
    requests=6,
    says="Reconnecting... 5/5",
    patient=True,
)
test_broken_once = recovers(agent, "500 from the engine, once", [BROKEN, ANSWER], requests=2)
test_full = fails(
    agent,
    "429 from the engine: it is full",
    [FULL],
    requests=1,
    says="model is at capacity",
    patient=True,
)
test_no_engine = fails(
    agent,
    "no engine left",
    [ANSWER],
    requests=1,
    says="model is at capacity",
    patient=True,
    engine_up=False,
)
test_cut = fails(
    agent,
    "a stream that breaks every time",
    [CUT],
    requests=6,
    says="Reconnecting... 5/5",
    patient=True,
)
test_cut_once = recovers(agent, "an engine that dies in mid-stream", [CUT, ANSWER], requests=2)

SIX_TIMES = Ends(6, says="Reconnecting... 5/5", patient=True)
LAST_TRY = "Reconnecting... 5/5"
INCOMPLETE = Ends(1, says="Incomplete response returned, reason: max_output_tokens")
AT_CAPACITY = Ends(1, says="model is at capacity")

test_rows = goes_through(
    agent,
    {
        rows.KEY: Ends(1),
        rows.UNPAID: Ends(1),
        rows.FORBIDDEN: Ends(1),
        rows.NO_MODEL: Ends(1),
        rows.NOT_FOUND: Ends(1),
        rows.SLOW: SIX_TIMES,
        rows.LARGE: Ends(1),
        rows.UNPROCESSABLE: Ends(1),
        rows.SHORT_LIMIT: Ends(6, says=LAST_TRY, patient=True, waits=2),
        rows.SHORT_LIMIT_ONCE: Ends(2, waits=2),
        rows.LONG_LIMIT: Ends(1),
        rows.QUOTA: Ends(1),
        rows.BAD_GATEWAY: SIX_TIMES,
        rows.UNAVAILABLE: AT_CAPACITY,
        rows.OVERLOADED: AT_CAPACITY,
        rows.EMPTY: Ends(1),
        rows.NOTHING_ONCE: Ends(1, says=""),
        rows.THOUGHT: Ends(1),
        rows.TOO_SHORT: INCOMPLETE,
        rows.TOO_SHORT_ONCE: INCOMPLETE,
        rows.UNSTREAMED: Ends(1),
        rows.REPORTED: SIX_TIMES,
        rows.REPORTED_ONCE: Ends(2),
        rows.OBJECT: SIX_TIMES,
        rows.OBJECT_ONCE: Ends(2),
        rows.COMMENTS: Ends(1, patient=True),
        rows.FILTERED: Ends(
            6, says="Incomplete response returned, reason: content_filter", patient=True
        ),
    },
)
test_failed_responses = goes_through(
    agent,
    {
        rows.RESPONSE_FAILED: SIX_TIMES,
        rows.RESPONSE_REFUSED: Ends(1),
        rows.RESPONSE_TOO_LONG: Ends(1),
        rows.RESPONSE_OVERLOADED: AT_CAPACITY,
        rows.RESPONSE_QUOTA: Ends(1),
        rows.RESPONSE_LIMITED: AT_CAPACITY,
        rows.RESPONSE_LIMITED_SOON: Ends(6, says=LAST_TRY, patient=True, waits=1.5),
        rows.RESPONSE_LIMITED_ONCE: Ends(2, waits=1.5),
    },
    kinds=NATIVE,
)
# As chat it is whole without: there the answer is told in the words that end it.
test_unended = goes_through(agent, {rows.UNENDED: SIX_TIMES}, kinds=NATIVE)
test_unended_chat = goes_through(agent, {rows.UNENDED: Ends(1)}, kinds=["chat-only"])
test_broken_arguments = replays_broken_arguments(agent, '{"cmd": "echo tr')
