"""A request is freed when it is over: the collector's pauses would be in other requests' TTFT."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from tests.support.apis import CHAT
from tests.support.running import configuration, running
from tests.support.scripted import scripted
from tests.support.site import answers

OURS = ("gateway.edge", "gateway.exchange", "gateway.upstream", "gateway.protocols")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_leaves_no_cycles(tmp_path: Path, stream: bool) -> None:
    async with (
        scripted(answers(CHAT)) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        body = {**CHAT.request, "stream": stream}
        for _ in range(3):
            await it.client.post("/v1/chat/completions", json=body)
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for _ in range(20):
                await it.client.post("/v1/chat/completions", json=body)
            gc.collect()
            left = [type(one) for one in gc.garbage if type(one).__module__.startswith(OURS)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        assert left == []
