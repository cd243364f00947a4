"""Claude Code through the gateway."""

from __future__ import annotations

from tests.real_clients.agents import ClaudeCode
from tests.real_clients.driving import Lab, Scenarios
from tests.real_clients.speech import Answer

claude = Scenarios(ClaudeCode())

ANSWER = Answer("The answer is forty-two.")


@claude.play("a plain answer")
async def test_answer(lab: Lab) -> None:
    async with lab.stage([ANSWER]) as stage:
        ran = await stage.run("What is the answer?")
        assert (ran.code, ran.out.strip()) == (0, ANSWER.text), ran.said
        lab.requests = await stage.requests()
        assert lab.requests == 1
        assert stage.records[0].session_source == "x-claude-code-session-id"
