"""Known parameters are found again, and chunk sizes that were not seen are predicted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import GatewayError
from gateway.planning.fit import fit, held_out
from gateway.planning.replay import Machine
from gateway.planning.traffic import Traffic
from tests.planning.made import KNOWN, family

ENGINE = {"block_size": KNOWN.block_size, "max_num_seqs": KNOWN.max_num_seqs}


def close(found: Machine, tolerance: float) -> None:
    wanted = KNOWN.latency
    assert found.latency.base == pytest.approx(wanted.base, rel=tolerance)
    assert found.latency.per_token == pytest.approx(wanted.per_token, rel=tolerance)
    assert found.latency.per_pair == pytest.approx(wanted.per_pair, rel=tolerance)
    assert found.overhead == pytest.approx(KNOWN.overhead, rel=tolerance, abs=0.001)


def slowed(traffic: Traffic, every: int, times: float) -> Traffic:
    """As if the machine had paused now and then."""
    done = [
        replace(one, ttft=(one.ttft or 0.0) * times) if number % every == 0 else one
        for number, one in enumerate(traffic.requests)
    ]
    return replace(traffic, requests=tuple(done))


def test_known_parameters_are_found_in_a_closed_loop() -> None:
    close(fit(family(64, 512, 2048), **ENGINE), 0.01)


def test_known_parameters_are_found_in_an_open_loop() -> None:
    """Who meets whom in which step depends on the times, so the fit stops near the truth."""
    close(fit(family(64, 512, 2048, users=None, rate=4.0), **ENGINE), 0.06)


def test_one_chunk_size_is_enough_for_a_fit() -> None:
    close(fit(family(256), **ENGINE), 0.02)


def test_pauses_of_the_machine_do_not_count_as_steps() -> None:
    disturbed = [slowed(one, every=12, times=6.0) for one in family(64, 512, 2048)]
    close(fit(disturbed, **ENGINE), 0.1)


def test_each_chunk_size_is_predicted_from_the_others() -> None:
    found = held_out(family(64, 256, 1024), **ENGINE)
    wanted = [(c, f, p) for c in (64, 256, 1024) for f in ("ttft", "tpot") for p in (50, 90)]
    assert [(one.chunk, one.figure, one.percent) for one in found] == wanted
    assert max(abs(one.error) for one in found) < 0.02


def test_what_is_held_out_is_not_looked_at() -> None:
    """Had its times been used, they would pull the prediction their way."""
    honest = {
        (one.chunk, one.figure, one.percent): one for one in held_out(family(64, 512), **ENGINE)
    }
    times = [slowed(one, 1, 3.0) if one.chunk == 512 else one for one in family(64, 512)]
    for one in held_out(times, **ENGINE):
        if one.chunk == 512:
            same = honest[one.chunk, one.figure, one.percent]
            assert one.predicted == same.predicted
            if one.figure == "ttft":
                assert one.error == pytest.approx((1 + same.error) / 3 - 1)


def test_one_chunk_size_says_nothing_of_others() -> None:
    assert held_out(family(256), **ENGINE) == []


def test_times_that_depend_on_nothing_are_refused() -> None:
    (traffic,) = family(256, users=1)
    alike = replace(traffic, requests=tuple(replace(r, ttft=0.5) for r in traffic.requests))
    with pytest.raises(GatewayError, match="depend on nothing that was computed"):
        fit([alike], **ENGINE)
