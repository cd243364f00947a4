"""The scenarios that every agent goes through; each makes one test, for the agent it is given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gateway.records import Outcome
from tests.real_clients.agents import Cline
from tests.real_clients.backend import Asked
from tests.real_clients.driving import Lab, Requests, Scenarios
from tests.real_clients.harness import Stage
from tests.real_clients.speech import COMPLETION_TOKENS, PROMPT_TOKENS, Answer
from tests.real_clients.steps import Breaks, Fails, Step, Waits
from tests.real_clients.terminal import terminal
from tests.support.running import KEY

Test = Callable[..., None]

ANSWER = Answer("The answer is forty-two.")
CUT = Breaks(Answer("The answer is forty-two, they say, but nobody knows the question."))

WRONG_KEY = "sk-wrong-0123456789abcdefghijkl"
REFUSED = Fails("400 Bad Request", "tool_choice is not supported here")
TOO_LONG = Fails(
    "400 Bad Request",
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens in "
    "the messages, Please reduce the length of the messages.",
)
BROKEN = Fails("500 Internal Server Error", "EngineCore died", "InternalServerError")
FULL = Fails("429 Too Many Requests", "too many requests", "RateLimitError")

FIRST_TOKEN = 20
"""Seconds. Signs of life go out meanwhile."""


def limited(tokens_per_minute: int) -> dict[str, Any]:
    """The usual key, with a limit. Every answer uses `PROMPT_TOKENS` and `COMPLETION_TOKENS`."""
    return {"keys": [{"name": "dev", "key": KEY, "tokens_per_minute": tokens_per_minute}]}


def answers(agent: Scenarios, session: str) -> Test:
    """Args:
    session: the signal that the gateway takes the conversation from.
    """

    @agent.play("a plain answer")
    async def play(lab: Lab) -> None:
        async with lab.stage([ANSWER]) as stage:
            await _answered(lab, stage, "What is the answer?")
            assert stage.records[0].session_source == session
            assert stage.records[0].usage is not None

    return play


def uses_a_tool(agent: Scenarios) -> Test:
    @agent.play("a tool, which really runs, and its result")
    async def play(lab: Lab) -> None:
        call = lab.agent.shell("printf hello > made.txt; echo printed-$((40+2))")
        async with lab.stage([call, ANSWER]) as stage:
            await _answered(lab, stage, "Make a file.", requests=2)
            assert (stage.folder / "made.txt").read_text() == "hello"
            assert "printed-42" in _told(stage.asked[1]), "the tool's output was not sent back"
            assert "printed-42" not in _told(stage.asked[0])

    return play


def keeps_its_arm(agent: Scenarios) -> Test:
    @agent.play("a conversation of three turns, which stays on its arm")
    async def play(lab: Lab) -> None:
        turns = [Answer(f"This is answer number {n}.") for n in range(3)]
        async with lab.stage(turns, turns) as stage:
            for number, turn in enumerate(turns):
                ran = await stage.run(f"This is question {number}.", again=number > 0)
                assert ran.code == 0 and turn.text in ran.out, ran.said
            await _stayed(lab, stage, "This is question 0.", turns[0].text, turns[1].text)

    return play


def keeps_its_arm_in_a_terminal(agent: Scenarios, cline: Cline) -> Test:
    """As `keeps_its_arm`, for an agent that goes on with a conversation in a terminal only."""

    @agent.play("a conversation of three turns, which stays on its arm: two in a terminal")
    async def play(lab: Lab) -> None:
        turns = [Answer(f"This is answer number {n}.") for n in range(3)]
        async with lab.stage(turns, turns) as stage:
            ran = await stage.run("This is question 0.")
            assert ran.code == 0 and turns[0].text in ran.out, ran.said
            listed = await stage.start(cline.list_conversations, 60)
            resume = cline.resume(listed.out)
            async with terminal(resume, stage.folder, stage.variables) as screen:
                await screen.shows("This is question 0.")
                for number in (1, 2):
                    await screen.enter(
                        f"This is question {number}.",
                        heard=partial(lambda n: len(stage.records) > n, number),
                    )
            await _stayed(lab, stage, "This is question 0.", turns[0].text, turns[1].text)

    return play


def waits_for_the_first_token(agent: Scenarios) -> Test:
    @agent.play(f"a first token that takes {FIRST_TOKEN} s", patient=True)
    async def play(lab: Lab) -> None:
        slow = [Waits(FIRST_TOKEN, ANSWER)]
        async with lab.stage(slow, keepalive_interval=3) as stage:
            await _answered(lab, stage, "What is the answer?")
            timeline = stage.records[0].timeline
            assert timeline.first_token is not None and timeline.sent is not None
            assert timeline.first_token - timeline.sent >= FIRST_TOKEN

    return play


def sends_a_long_prompt(agent: Scenarios) -> Test:
    @agent.play("a prompt of 100 KB")
    async def play(lab: Lab) -> None:
        prompt = "Sum up: " + "lorem ipsum " * 8500
        async with lab.stage([ANSWER]) as stage:
            await _answered(lab, stage, prompt)
            assert prompt.strip() in _told(stage.asked[0])

    return play


def fails(
    agent: Scenarios,
    scenario: str,
    steps: Sequence[Step],
    *,
    requests: Requests,
    says: str,
    patient: bool = False,
    engine_up: bool = True,
    **changes: Any,
) -> Test:
    """The agent gives up.

    Args:
        requests: that it makes before; a range where it depends on how fast the machine is.
        says: a part of what it shows its user.
        engine_up: or the operator has taken it out.
        changes: as for `harness.stage`.
    """

    @agent.play(scenario, patient=patient)
    async def play(lab: Lab) -> None:
        async with lab.stage(steps, **changes) as stage:
            stage.gateway.gateway.context.table.backends["b0"].enabled = engine_up
            ran = await stage.run("What is the answer?", timeout=400)
            await made(lab, requests, stage)
            assert says in ran.said, (ran.said[-800:], stage.told)

    return play


def recovers(
    agent: Scenarios,
    scenario: str,
    steps: Sequence[Step],
    *,
    requests: int,
    patient: bool = False,
    **changes: Any,
) -> Test:
    """The agent answers in the end, with `ANSWER`, after a request that failed."""

    @agent.play(scenario, patient=patient)
    async def play(lab: Lab) -> None:
        async with lab.stage(steps, **changes) as stage:
            await _answered(lab, stage, "What is the answer?", requests=requests)
            assert any(one.outcome is not Outcome.OK for one in stage.records)

    return play


def gives_up_when_cut(agent: Scenarios, scenario: str, steps: Sequence[Step]) -> Test:
    """The agent tells its user that the first answer broke off, and asks no second time."""
    return fails(agent, scenario, steps, requests=1, says="broke off")


def still_trying(
    agent: Scenarios,
    scenario: str,
    steps: Sequence[Step],
    *,
    requests: Requests,
    engine_up: bool = True,
    **changes: Any,
) -> Test:
    """After a minute the agent has neither given up nor told its user anything.

    Args:
        engine_up, changes: as for `fails`.
    """

    @agent.play(f"{scenario}: the first minute", patient=True)
    async def play(lab: Lab) -> None:
        async with lab.stage(steps, **changes) as stage:
            stage.gateway.gateway.context.table.backends["b0"].enabled = engine_up
            await goes_on(stage, seconds=60)
            await made(lab, requests, stage)

    return play


def waits_for_its_limit(agent: Scenarios) -> Test:
    """The first answer overdraws the limit by what comes back in half a minute."""
    call = agent.agent.shell("printf hello")
    allowed = PROMPT_TOKENS + COMPLETION_TOKENS - 400
    scenario = "a key's limit, over again in half a minute"
    return recovers(agent, scenario, [call, ANSWER], requests=3, patient=True, **limited(allowed))


async def _answered(lab: Lab, stage: Stage, prompt: str, *, requests: int = 1) -> None:
    ran = await stage.run(prompt)
    assert ran.code == 0 and ANSWER.text in ran.out, ran.said
    await made(lab, requests, stage)


async def goes_on(stage: Stage, seconds: int) -> None:
    """So long after its first request the agent is still at work; then it is ended."""
    run = asyncio.ensure_future(stage.run("What is the answer?", timeout=400))
    while not stage.records and not run.done():
        await asyncio.sleep(0.1)
    ended, _ = await asyncio.wait({run}, timeout=seconds)
    assert not ended, run.result().said
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def _stayed(lab: Lab, stage: Stage, *known: str) -> None:
    """Three requests of one conversation, of two arms on one; the third one knows all this."""
    await made(lab, 3, stage)
    assert sorted(len(one.asked) for one in stage.engines) == [0, 3]
    assert len({(one.session, one.arm, one.backend) for one in stage.records}) == 1
    for text in known:
        assert text in _told(stage.asked[2]), f"not in the third request: {text}"


async def made(lab: Lab, expected: Requests, stage: Stage) -> None:
    number = await stage.requests()
    wanted = range(expected, expected + 1) if isinstance(expected, int) else expected
    assert number in wanted, f"{number} requests: {stage.told}"
    lab.requests = expected


def _told(asked: Asked) -> str:
    """All text of a request, in order."""
    return " ".join(_strings(asked.body))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for one in value for text in _strings(one)] if isinstance(value, list) else []
