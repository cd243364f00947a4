"""What the engine refuses of real clients' requests arrives in a form that it takes."""

from __future__ import annotations

import pytest

from benchmarks.engine.serving import MODEL
from tests.real_engine.lab import Lab, events, on_engine
from tests.real_engine.repairs import CASES, MESSAGES, Case

pytestmark = on_engine

every_case = pytest.mark.parametrize("case", CASES, ids=str)


@every_case
async def test_the_engine_itself_refuses(site: Lab, case: Case) -> None:
    reply = await site.engines["a"].post(case.path, json={"model": MODEL, **case.body})
    assert reply.status_code == case.status, reply.text


@every_case
async def test_through_the_gateway_it_answers(site: Lab, case: Case) -> None:
    body = {"model": "m@a", **case.body}
    whole = await site.client.post(case.path, json=body)
    assert whole.status_code == 200, whole.text
    stream = await site.client.post(case.path, json=body | {"stream": True})
    assert stream.status_code == 200, stream.text
    last = "message_stop" if case.path == MESSAGES else "response.completed"
    assert events(stream.text)[-1]["type"] == last
    line = await site.line(stream.headers["x-request-id"])
    assert line["backend_api"] == line["api"], "it was translated, not repaired"
