"""Traces as operators run them: a process that is told to stop sends what it has left."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.operation.engine import Engine
from tests.support.collector import collecting, plain
from tests.support.gateway_process import serving, settings
from tests.support.scripted import scripted


async def test_a_process_that_stops_sends_its_last_spans(tmp_path: Path) -> None:
    with collecting() as collector:
        async with scripted(Engine("a1")) as a1, scripted(Engine("b1")) as b1:
            content = settings(tmp_path, a1.url, b1.url, traces={"otlp_endpoint": collector.url})
            async with serving(tmp_path, content) as it:
                answers = await asyncio.gather(*(it.ask(f"s{n}") for n in range(8)))
                assert await it.stop() == 0
                assert "opentelemetry" not in it.said.lower()
    assert [answer.status_code for answer in answers] == [200] * 8
    found = {str(plain(span.attributes)["ttft_gateway.request_id"]) for span in collector.spans}
    assert found == {answer.headers["x-request-id"] for answer in answers}
    assert len(collector.spans) == 8
