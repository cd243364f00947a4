"""The time to the first token and cached tokens are those that the engine has measured."""

from __future__ import annotations

import pytest

from gateway.records import Api, Usage
from tests.apis.asked import TOKENS, Asked, streaming
from tests.support.simulated import Simulated, totals

pytestmark = pytest.mark.asyncio(loop_scope="module")


@streaming
async def test_ttft_is_when_the_engine_generated_and_not_when_it_first_spoke(
    steady: Simulated, asked: Asked, long_prompt: str
) -> None:
    """The prompt is computed in about 0.13 s."""
    before = await totals(steady)
    request = asked.about(long_prompt).request(tokens=3, stream=True)
    response = await steady.it.client.post(asked.path, json=request)
    assert response.status_code == 200
    line = (await steady.it.record()).timeline
    assert line.body_complete and line.sent and line.first_byte
    assert line.first_token and line.last_token and line.done
    assert line.first_byte <= line.first_token < line.last_token <= line.done
    if asked.api is Api.RESPONSES:
        assert "response.created" in response.text.split("\n\n")[0]
        assert line.first_token - line.first_byte > 0.1, "response.created stopped the clock"
    came = await totals(steady) - before
    seen = line.first_token - line.sent
    engine = came["vllm:time_to_first_token_seconds_sum"]
    assert 0.1 < engine <= seen < engine + 0.2
    for name, seconds in (
        ("time_to_first_token", line.first_token - line.body_complete),
        ("upstream_time_to_first_token", seen),
    ):
        name = f"gateway_{name}_seconds"
        api = {"model": "m", "arm": "a0", "backend": "b0", "api": asked.api}
        assert came.labelled(f"{name}_count", **api) == came[f"{name}_count"] == 1
        assert came[f"{name}_sum"] == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@streaming
async def test_cached_tokens_are_those_the_engine_counted(
    site: Simulated, asked: Asked, stream: bool, long_prompt: str
) -> None:
    before = await totals(site)
    request = asked.about(long_prompt).request(stream=stream)
    for _ in range(2):
        assert (await site.it.client.post(asked.path, json=request)).status_code == 200
    await site.it.record(2)
    first, second = (record.usage for record in site.it.records)
    assert first is not None and second is not None
    assert first.cached == 0
    block = 16
    assert second.cached == (second.prompt - 1) // block * block > 1000
    assert second == Usage(first.prompt, second.cached, TOKENS)
    came = await totals(site) - before
    for ours, engines, tokens in (
        ("prompt", "prompt", first.prompt + second.prompt),
        ("cached_prompt", "prompt_tokens_cached", second.cached),
        ("completion", "generation", 2 * TOKENS),
    ):
        engines = engines if engines.endswith("cached") else f"{engines}_tokens"
        assert came[f"vllm:{engines}_total"] == tokens
        served = {"model": "m", "arm": "a0", "backend": "b0"}
        assert came.labelled(f"gateway_{ours}_tokens_total", **served) == tokens
    assert came["vllm:prefix_cache_hits_total"] == second.cached
