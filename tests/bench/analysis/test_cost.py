"""What the client itself cost in a round."""

from __future__ import annotations

from gateway.bench.analysis.cost import client_cost
from gateway.bench.results import ClientCost
from tests.bench.made import failed, ok


def test_the_share_is_of_the_median_ttft() -> None:
    samples = [ok(10.0, client_ms=1.0), ok(30.0, client_ms=3.0), ok(20.0, client_ms=0.5)]
    cost = client_cost(samples, cpu=0.006, duration=2.0, delays=[0.0005, 0.0015])
    assert cost == ClientCost(
        cpu_ms_per_request=2.0,
        cpu_share=0.003,
        send_ms=1.5,
        stamp_ms=1.0,
        stamp_p99_ms=1.49,
        ttft_share=0.125,
    )


def test_without_a_pulse_or_a_first_token_there_is_no_share() -> None:
    assert client_cost([ok(10.0)], cpu=0.0, duration=1.0, delays=[]).ttft_share is None
    assert client_cost([failed()], cpu=0.0, duration=1.0, delays=[0.001]).ttft_share is None
    assert client_cost([], cpu=0.0, duration=0.0, delays=[]) == ClientCost(
        cpu_ms_per_request=0.0, cpu_share=0.0, send_ms=0.0
    )
