from __future__ import annotations

import pytest

from gateway.simulator.latency import StepLatency
from gateway.simulator.scheduler import Chunk, Step
from tests.simulator.loads import sequence


def test_a_step_costs_its_base_its_tokens_and_their_context() -> None:
    latency = StepLatency(base=1.0, per_token=0.1, per_pair=0.001)
    step = Step([Chunk(sequence(1), 100, 1), Chunk(sequence(1), 0, 9)])
    # 1 token sees 101; 9 tokens see 1 to 9, 45 pairs.
    assert latency.of(step) == pytest.approx(1.0 + 10 * 0.1 + (101 + 45) * 0.001)


def test_nothing_costs_nothing() -> None:
    assert StepLatency(1.0, 1.0, 1.0).of(Step()) == 0.0


@pytest.mark.parametrize("cut", [1, 64, 500, 999])
def test_cutting_a_prompt_adds_bases_only(cut: int) -> None:
    latency = StepLatency(base=1.0, per_token=0.1, per_pair=0.001)
    one = sequence(1)
    whole = latency.of(Step([Chunk(one, 0, 1000)]))
    parts = latency.of(Step([Chunk(one, 0, cut)])) + latency.of(Step([Chunk(one, cut, 1000 - cut)]))
    assert parts == pytest.approx(whole + 1.0)
