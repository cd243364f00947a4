"""Qwen Code tries for many minutes what may pass, and once what was cut."""

from __future__ import annotations

from tests.real_clients import rows
from tests.real_clients.agents import Qwen
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
    gives_up_when_cut,
    keeps_its_arm,
    limited,
    recovers,
    sends_a_long_prompt,
    still_trying,
    uses_a_tool,
    waits_for_its_limit,
    waits_for_the_first_token,
)
from tests.real_clients.driving import Scenarios
from tests.real_clients.rows import Ends, Row, goes_through
from tests.real_clients.speech import Answer

agent = Scenarios(Qwen())

test_answer = answers(agent, session="fingerprint")
test_tool = uses_a_tool(agent)
test_conversation = keeps_its_arm(agent)
test_slow = waits_for_the_first_token(agent)
test_long = sends_a_long_prompt(agent)

test_wrong_key = fails(
    agent,
    "a wrong key",
    [ANSWER],
    requests=1,
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
    says="per minute",
    **limited(1),
)
test_broken = still_trying(
    agent, "500 from the engine, every time", [BROKEN], requests=range(5, 25)
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
    requests=2,
    says="maximum context length",
)
test_full = still_trying(agent, "429 from the engine: it is full", [FULL], requests=range(4, 25))
test_no_engine = still_trying(
    agent, "no engine left", [ANSWER], requests=range(4, 25), engine_up=False
)
test_broken_once = recovers(agent, "500 from the engine, once", [BROKEN, ANSWER], requests=2)
test_cut = gives_up_when_cut(agent, "a stream that breaks every time", [CUT])
test_cut_once = gives_up_when_cut(agent, "an engine that dies in mid-stream", [CUT, ANSWER])

# It takes such a call for a broken stream; afterwards it asks who is to speak next.
BROKEN_CALL = Row(
    "a tool's arguments that break off: it asks again without them",
    (Answer(tool=agent.agent.tool, arguments='{"command": "echo tr'), ANSWER),
)
STILL_TRYING = Ends(range(4, 25), after=60)

test_rows = goes_through(
    agent,
    {
        rows.KEY: Ends(1),
        rows.UNPAID: Ends(1),
        rows.FORBIDDEN: Ends(1),
        rows.NO_MODEL: Ends(1),
        rows.NOT_FOUND: Ends(1),
        rows.SLOW: STILL_TRYING,
        rows.LARGE: Ends(1),
        rows.UNPROCESSABLE: Ends(1),
        # After a while of its own, whatever it was told.
        rows.SHORT_LIMIT_ONCE: Ends(2),
        rows.LONG_LIMIT: Ends(1),
        rows.QUOTA: Ends(1),
        rows.BAD_GATEWAY: STILL_TRYING,
        rows.UNAVAILABLE: STILL_TRYING,
        rows.OVERLOADED: STILL_TRYING,
        rows.EMPTY: Ends(3),
        rows.THOUGHT: Ends(1),
        rows.NOTHING_ONCE: Ends(2),
        rows.TOO_SHORT: Ends(5),
        rows.TOO_SHORT_ONCE: Ends(2),
        rows.UNSTREAMED: Ends(1),
        rows.REPORTED: Ends(1),
        rows.REPORTED_ONCE: Ends(1, says="failed to answer"),
        rows.OBJECT: Ends(1),
        rows.OBJECT_ONCE: Ends(1, says="failed to answer"),
        rows.UNENDED: Ends(1),
        rows.COMMENTS: Ends(1, patient=True),
        rows.FILTERED: Ends(1),
        BROKEN_CALL: Ends(3),
    },
)
