"""Traffic on a simulated engine."""

from __future__ import annotations

from dataclasses import replace

from gateway.planning.replay import replay
from gateway.planning.traffic import Request, Traffic
from tests.planning.made import KNOWN


def test_what_was_cached_stays_so_however_much_is_computed_in_between() -> None:
    """The log says what was found; a smaller simulated cache must not find less."""
    new = [Request(at=float(n), prompt=1000, cached=0, output=1) for n in range(50)]
    late = Request(at=60.0, prompt=1010, cached=992, output=1)
    machine = replace(KNOWN, max_num_seqs=2)
    replayed = replay(Traffic(name="b", chunk=64, requests=(*new, late)), machine, 64)
    assert [one.served.cached for one in replayed] == [0] * 50 + [992]


def test_a_large_bound_of_sequences_costs_no_memory() -> None:
    """Blocks are there for the requests that are; 2**31 sequences took more than all memory."""
    its = (Request(at=0.0, prompt=100, cached=0, output=2),)
    machine = replace(KNOWN, max_num_seqs=2**31)
    (found,) = replay(Traffic(name="b", chunk=2**31, requests=its), machine, 2**31)
    assert found.served.tpot is not None
