"""Ways of an engine to fail, or to answer strangely, and what an agent makes of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.real_clients.backend import Kind
from tests.real_clients.common import ANSWER, CUT, Test, goes_on, made
from tests.real_clients.driving import BOTH, Lab, Play, Requests, Scenarios
from tests.real_clients.harness import Stage
from tests.real_clients.speech import Answer
from tests.real_clients.steps import Fails, Ignores, Reports, Step, Stops, Waits

REASON = "temperature must be below 2"
OPERATOR = "tell the operator"
AT_ITS_LIMIT = "at its limit"


@dataclass(frozen=True)
class Row:
    """Attributes:
    scenario: as the documentation says it.
    steps: the engine's.
    says: a part of what agents show their users.
    """

    scenario: str
    steps: tuple[Step, ...]
    says: str = ANSWER.text


def _status(
    status: str,
    says: str,
    message: str = REASON,
    note: str = "",
    kind: str = "",
    headers: str = "",
    then: tuple[Step, ...] = (),
) -> Row:
    fails = Fails(status, message, kind or "SomeError", kind or None, headers)
    return Row(f"{status[:3]} from the engine{note}", (fails, *then), says)


KEY = _status("401 Unauthorized", OPERATOR, note=", to the gateway's own key")
UNPAID = _status("402 Payment Required", OPERATOR)
FORBIDDEN = _status("403 Forbidden", OPERATOR)
NO_MODEL = _status(
    "404 Not Found", OPERATOR, "The model `m` does not exist.", note=", which knows no such model"
)
NOT_FOUND = _status("404 Not Found", REASON, note=", for another reason")
SLOW = _status("408 Request Timeout", "took too long")
LARGE = _status("413 Content Too Large", REASON)
UNPROCESSABLE = _status("422 Unprocessable Entity", REASON)
SHORT_LIMIT = _status(
    "429 Too Many Requests",
    AT_ITS_LIMIT,
    note=" with `retry-after: 2`, every time",
    headers="retry-after: 2\r\n",
)
SHORT_LIMIT_ONCE = _status(
    "429 Too Many Requests",
    ANSWER.text,
    note=" with `retry-after: 2`, once",
    headers="retry-after: 2\r\n",
    then=(ANSWER,),
)
LONG_LIMIT = _status(
    "429 Too Many Requests",
    "again in 3600 s",
    note=" with `retry-after: 3600`",
    headers="retry-after: 3600\r\n",
)
QUOTA = _status(
    "429 Too Many Requests",
    "quota",
    note=" with `insufficient_quota`",
    kind="insufficient_quota",
)
BAD_GATEWAY = _status("502 Bad Gateway", "failed to answer")
UNAVAILABLE = _status("503 Service Unavailable", AT_ITS_LIMIT)
OVERLOADED = _status("529 Site is overloaded", AT_ITS_LIMIT)

EMPTY = Row("an answer of nothing", (Answer(),), "")
THOUGHT = Row("an answer of thoughts alone", (Answer(thinking="Let me think about this."),), "")
NOTHING_ONCE = Row("an answer of nothing, once", (Answer(), ANSWER))
TOO_SHORT = Row(
    "an answer that its limit of length ends, every time",
    (Answer("The answer is forty", cut=True),),
    "The answer is forty",
)
TOO_SHORT_ONCE = Row(
    "an answer that its limit of length ends, once",
    (Answer("The answer is forty", cut=True), ANSWER),
)
UNSTREAMED = Row("JSON where a stream was asked for", (Ignores(ANSWER),))
REPORTED = Row(
    "an error event in mid-stream, every time", (Reports(CUT.answer, own=True),), "failed to answer"
)
REPORTED_ONCE = Row(
    "an error event in mid-stream, once", (Reports(CUT.answer, own=True), ANSWER), ANSWER.text
)
OBJECT = Row(
    "an error object of OpenAI's in mid-stream, every time",
    (Reports(CUT.answer, own=False),),
    "failed to answer",
)
OBJECT_ONCE = Row(
    "an error object of OpenAI's in mid-stream, once", (Reports(CUT.answer, own=False), ANSWER)
)
UNENDED = Row("a stream without its last event", (Stops(ANSWER),))
COMMENTS = Row("8 s of comments before the first event", (Waits(8, ANSWER, comments=True),))
FILTERED = Row(
    "an answer that a filter of contents ends",
    (Answer("The answer is forty", filtered=True),),
    "The answer is forty",
)


def _event(kind: str, status: str, says: str) -> Row:
    """An error event of the Messages API; asked without a stream the engine answers the status."""
    event = Reports(CUT.answer, own=True, error=Fails(status, REASON, kind))
    return Row(f"an error event of type `{kind}` in mid-stream", (event,), says)


EVENT_OVERLOADED = _event("overloaded_error", "529 Site is overloaded", AT_ITS_LIMIT)
EVENT_LIMITED = _event("rate_limit_error", "429 Too Many Requests", AT_ITS_LIMIT)
EVENT_REFUSED = _event("invalid_request_error", "400 Bad Request", REASON)
EVENT_FAILED = _event("api_error", "500 Internal Server Error", "failed to answer")


def _response(code: str, says: str, message: str = REASON, note: str = "", *more: Step) -> Row:
    """A response of the Responses API that fails after its first tokens."""
    error = Fails("500 Internal Server Error", message, code=code)
    event = Reports(CUT.answer, own=True, error=error, failed=True)
    return Row(f"`response.failed` with `{code}`{note}", (event, *more), says)


_SOON, _NOTE = "Rate limit reached. Please try again in 1.5s.", ", to be tried again in 1.5 s"
RESPONSE_FAILED = _response("server_error", "failed to answer")
RESPONSE_REFUSED = _response("invalid_prompt", REASON)
RESPONSE_TOO_LONG = _response("context_length_exceeded", "ran out of room")
RESPONSE_OVERLOADED = _response("server_is_overloaded", AT_ITS_LIMIT)
RESPONSE_QUOTA = _response("insufficient_quota", OPERATOR)
RESPONSE_LIMITED = _response("rate_limit_exceeded", AT_ITS_LIMIT)
RESPONSE_LIMITED_SOON = _response("rate_limit_exceeded", AT_ITS_LIMIT, _SOON, _NOTE)
RESPONSE_LIMITED_ONCE = _response(
    "rate_limit_exceeded", ANSWER.text, _SOON, f"{_NOTE}, once", ANSWER
)


MOMENT = 0.1
"""Seconds."""


@dataclass(frozen=True)
class Ends:
    """What an agent makes of a row.

    Attributes:
        requests: that it makes; a range where it depends on how fast the machine is.
        says: a part of what it shows its user, where it is not the row's.
        patient: as of cases.
        after: seconds until it is ended, where it would go on trying.
        waits: seconds that it lets pass, at least, before it asks again.
    """

    requests: Requests
    says: str | None = None
    patient: bool = False
    after: int = 0
    waits: float = 0


def goes_through(agent: Scenarios, rows: Mapping[Row, Ends], kinds: Sequence[Kind] = BOTH) -> Test:
    """One test for each row and kind of engine."""
    cases = []
    for row, ends in rows.items():
        scenario = f"{row.scenario}: the first {ends.after} s" if ends.after else row.scenario
        patient = ends.patient or ends.after > 0
        cases += agent.cases_of(scenario, kinds, _play(row, ends), patient=patient)
    return agent.test(cases)


def _play(row: Row, ends: Ends) -> Play:
    async def play(lab: Lab) -> None:
        async with lab.stage(row.steps) as stage:
            if ends.after:
                await goes_on(stage, ends.after)
            else:
                ran = await stage.run("What is the answer?", timeout=500)
                says = row.says if ends.says is None else ends.says
                assert says in ran.said, (ran.said[-800:], stage.told)
            await made(lab, ends.requests, stage)
            # The agent has had its answer a moment before the gateway notes that it has.
            assert all(wait >= ends.waits - MOMENT for wait in _waits(stage)), list(_waits(stage))

    return play


def _waits(stage: Stage) -> Iterator[float]:
    """Seconds from the end of one request to the start of the next."""
    for one, another in pairwise(sorted(stage.records, key=lambda record: record.at)):
        assert one.timeline.done is not None
        yield another.timeline.received - one.timeline.done


def replays_broken_arguments(agent: Scenarios, arguments: str) -> Test:
    """The model calls a tool with half a JSON; engines and templates want a whole one back."""

    @agent.play("a tool's arguments that break off: they are sent back")
    async def play(lab: Lab) -> None:
        call = Answer(tool=lab.agent.tool, arguments=arguments)
        async with lab.stage([call, ANSWER]) as stage:
            ran = await stage.run("What is the answer?")
            assert ran.code == 0 and ANSWER.text in ran.out, ran.said
            await made(lab, 2, stage)
            replayed = [call for asked in stage.asked for call in _calls(asked.body)]
            assert replayed and all(isinstance(one, dict) for one in replayed), replayed

    return play


def _calls(value: Any) -> Iterator[Any]:
    """What the calls of a request's conversation are given, in whichever API."""
    if isinstance(value, list):
        for one in value:
            yield from _calls(one)
    elif isinstance(value, dict):
        if value.get("type") == "tool_use":
            yield value["input"]
        elif "arguments" in value:
            yield json.loads(value["arguments"])
        for name in ("messages", "input", "content", "tool_calls", "function"):
            yield from _calls(value.get(name))
