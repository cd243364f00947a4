"""Claude Code asks once more without a stream, and eleven times in three minutes after a 5xx."""

from __future__ import annotations

from tests.real_clients import rows
from tests.real_clients.agents import ClaudeCode
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
from tests.real_clients.driving import NATIVE, Lab, Scenarios
from tests.real_clients.rows import Ends, goes_through, replays_broken_arguments

agent = Scenarios(ClaudeCode())

test_answer = answers(agent, session="x-claude-code-session-id")
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
    patient=True,
    key=WRONG_KEY,
)
test_unknown_model = fails(
    agent,
    "a model that is not there",
    [ANSWER],
    requests=2,
    says="issue with the selected model",
    model="nope",
)
test_limit = waits_for_its_limit(agent)
test_quota = fails(
    agent,
    "a key's limit, used up for long",
    [agent.agent.shell("printf hello"), ANSWER],
    requests=2,
    says="429",
    **limited(1),
)
test_refused = fails(
    agent,
    "400 from the engine: it refuses the request",
    [REFUSED],
    requests=1,
    says="400 tool_choice is not supported here",
)
test_too_long = fails(
    agent,
    "a prompt that is too long",
    [TOO_LONG],
    requests=1,
    says="Prompt is too long",
)
test_broken = fails(
    agent,
    "500 from the engine, every time",
    [BROKEN],
    requests=range(10, 12),
    says="server-side issue",
    patient=True,
)
test_broken_once = recovers(agent, "500 from the engine, once", [BROKEN, ANSWER], requests=2)
test_full = fails(
    agent,
    "429 from the engine: it is full",
    [FULL],
    requests=range(10, 12),
    says="server-side issue",
    patient=True,
)
test_no_engine = fails(
    agent,
    "no engine left",
    [ANSWER],
    requests=range(10, 12),
    says="server-side issue",
    patient=True,
    engine_up=False,
)
test_cut = fails(
    agent,
    "a stream that breaks every time",
    [CUT],
    requests=range(11, 13),
    says="API Error",
    patient=True,
)
test_cut_once = recovers(agent, "an engine that dies in mid-stream", [CUT, ANSWER], requests=2)


@agent.play("/context, which counts tokens")
async def test_context(lab: Lab) -> None:
    async with lab.stage([ANSWER]) as stage:
        ran = await stage.run("/context")
        assert ran.code == 0 and "Context Usage" in ran.out, ran.said
        counts = [one for one in stage.gateway.records if one.path.endswith("/count_tokens")]
        assert [one.status for one in counts] == [200] * 14
        lab.requests = len(counts)


OVER_AND_OVER = Ends(range(10, 12), says="server-side issue", patient=True)

test_rows = goes_through(
    agent,
    {
        rows.KEY: Ends(1),
        rows.UNPAID: Ends(1),
        rows.FORBIDDEN: Ends(1),
        rows.NO_MODEL: Ends(1),
        rows.NOT_FOUND: Ends(2, says="issue with the selected model"),
        rows.SLOW: OVER_AND_OVER,
        rows.LARGE: Ends(1, says="Request too large"),
        rows.UNPROCESSABLE: Ends(1),
        rows.SHORT_LIMIT: Ends(range(10, 12), says="server-side issue", patient=True, waits=2),
        rows.SHORT_LIMIT_ONCE: Ends(2, waits=2),
        rows.LONG_LIMIT: Ends(1),
        rows.QUOTA: Ends(1),
        rows.BAD_GATEWAY: OVER_AND_OVER,
        rows.UNAVAILABLE: OVER_AND_OVER,
        rows.OVERLOADED: OVER_AND_OVER,
        rows.EMPTY: Ends(2),
        rows.NOTHING_ONCE: Ends(2),
        rows.THOUGHT: Ends(2),
        rows.TOO_SHORT: Ends(4, says="exceeded the 32000 output token maximum"),
        rows.TOO_SHORT_ONCE: Ends(2),
        rows.UNSTREAMED: Ends(1),
        rows.REPORTED: Ends(range(10, 13), says="API Error", patient=True),
        rows.REPORTED_ONCE: Ends(2),
        rows.OBJECT: Ends(range(10, 13), says="API Error", patient=True),
        rows.OBJECT_ONCE: Ends(2),
        rows.UNENDED: Ends(1),
        rows.COMMENTS: Ends(1, patient=True),
        rows.FILTERED: Ends(1, says="appears to violate our Usage Policy"),
    },
)
# It asks once more without a stream, and what it is told then decides.
test_events = goes_through(
    agent,
    {
        rows.EVENT_REFUSED: Ends(2),
        rows.EVENT_OVERLOADED: Ends(range(10, 13), says="API Error", patient=True),
        rows.EVENT_LIMITED: Ends(range(10, 13), says="API Error", patient=True),
        rows.EVENT_FAILED: Ends(range(10, 13), says="API Error", patient=True),
    },
    kinds=NATIVE,
)
test_broken_arguments = replays_broken_arguments(agent, '{"command": "echo tr')
