"""opencode tries six times what may pass, and once what was cut."""

from __future__ import annotations

from tests.real_clients import rows
from tests.real_clients.agents import OpenCode
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
from tests.real_clients.rows import Ends, goes_through, replays_broken_arguments

agent = Scenarios(OpenCode())

test_answer = answers(agent, session="x-session-id")
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
test_quota = still_trying(
    agent,
    "a key's limit, used up for long",
    [agent.agent.shell("printf hello"), ANSWER],
    requests=2,
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
    requests=2,
    says="maximum context length",
)
test_broken = fails(
    agent,
    "500 from the engine, every time",
    [BROKEN],
    requests=6,
    says="server",
    patient=True,
)
test_broken_once = recovers(agent, "500 from the engine, once", [BROKEN, ANSWER], requests=2)
test_full = fails(
    agent,
    "429 from the engine: it is full",
    [FULL],
    requests=6,
    says="server",
    patient=True,
)
test_no_engine = fails(
    agent,
    "no engine left",
    [ANSWER],
    requests=6,
    says="No server",
    patient=True,
    engine_up=False,
)
test_cut = gives_up_when_cut(agent, "a stream that breaks every time", [CUT])
test_cut_once = gives_up_when_cut(agent, "an engine that dies in mid-stream", [CUT, ANSWER])

test_rows = goes_through(
    agent,
    {
        rows.KEY: Ends(1),
        rows.UNPAID: Ends(1),
        rows.FORBIDDEN: Ends(1),
        rows.NO_MODEL: Ends(1),
        rows.NOT_FOUND: Ends(1),
        rows.SLOW: Ends(6, patient=True),
        rows.LARGE: Ends(2),
        rows.UNPROCESSABLE: Ends(1),
        rows.SHORT_LIMIT_ONCE: Ends(2, waits=2),
        rows.LONG_LIMIT: Ends(1, after=60),
        rows.QUOTA: Ends(1),
        rows.BAD_GATEWAY: Ends(6, says="server", patient=True),
        rows.UNAVAILABLE: Ends(6, says="server", patient=True),
        rows.OVERLOADED: Ends(6, says="server", patient=True),
        rows.EMPTY: Ends(1),
        rows.THOUGHT: Ends(1),
        rows.NOTHING_ONCE: Ends(1, says=""),
        rows.TOO_SHORT: Ends(1),
        rows.TOO_SHORT_ONCE: Ends(1, says="The answer is forty"),
        rows.UNSTREAMED: Ends(1),
        rows.REPORTED: Ends(1),
        rows.REPORTED_ONCE: Ends(1, says="failed to answer"),
        rows.OBJECT: Ends(1),
        rows.OBJECT_ONCE: Ends(1, says="failed to answer"),
        rows.UNENDED: Ends(1),
        rows.COMMENTS: Ends(1, patient=True),
        rows.FILTERED: Ends(1),
    },
)
test_broken_arguments = replays_broken_arguments(agent, '{"command": "echo tr')
