"""What holds for every load: nothing is lost, nothing is over budget, nobody overtakes."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator import answer
from gateway.simulator.scheduler import Scheduler, Step
from gateway.simulator.sequence import Sequence, State
from tests.simulator.loads import scheduler, sequence

BLOCK = 4
BLOCKS = 12


@dataclass(frozen=True)
class Arrival:
    """A request that comes before step `at` and leaves `patience` steps later, if ever."""

    shared: int
    own: int
    max_tokens: int
    at: int
    patience: int | None


arrivals = st.lists(
    st.builds(
        Arrival,
        shared=st.integers(0, 12),
        own=st.integers(1, 16),
        max_tokens=st.integers(1, 12),
        at=st.integers(0, 12),
        patience=st.none() | st.integers(0, 8),
    ),
    min_size=1,
    max_size=12,
).map(lambda found: sorted(found, key=lambda one: one.at))


class Watched:
    """A scheduler whose every step is checked."""

    def __init__(self, engine: Scheduler, budget: int, seqs: int, load: list[Arrival]) -> None:
        self.engine = engine
        self.sequences = [
            sequence(one.own, one.max_tokens, shared=one.shared, name=number)
            for number, one in enumerate(load)
        ]
        self.admitted: list[Sequence] = []
        self._budget = budget
        self._seqs = seqs
        self._load = list(zip(load, self.sequences, strict=True))

    def run(self) -> None:
        number = 0
        while number <= 24 or self.engine.has_work:
            for one, made in self._load:
                if one.at == number:
                    self.engine.add(made)
            before = {one: one.computed for one in self.sequences}
            step = self.engine.schedule()
            self._check(step, before)
            for one, made in self._load:
                if one.patience is not None and one.at + one.patience == number:
                    self.engine.abort(made)
            self.engine.complete(step, answer.token)
            self._check_blocks()
            number += 1
            assert number < 2000, "no progress"

    def _check(self, step: Step, before: dict[Sequence, int]) -> None:
        assert step.tokens <= self._budget
        assert len(self.engine.running) <= self._seqs
        assert all(chunk.tokens > 0 for chunk in step.chunks)
        computing = [chunk.sequence for chunk in step.chunks]
        assert len(set(computing)) == len(computing)
        # Whoever has budget is a head of the running: those behind got none before they did.
        assert computing == self.engine.running[: len(computing)]
        assert bool(step.chunks) or not self.engine.has_work
        for one, computed in before.items():
            if one in step.preempted:
                assert one.computed == 0
            else:
                assert one.computed >= computed
            assert one.computed <= len(one.tokens)
        self.admitted += [one for one in computing if one not in self.admitted]
        self._check_blocks()

    def _check_blocks(self) -> None:
        cache = self.engine.cache
        held = {block for one in self.sequences for block in one.table.blocks}
        assert cache.used_blocks == len(held)
        assert cache.used_blocks + cache.free_blocks == cache.num_blocks
        for one in self.sequences:
            if one.state is State.RUNNING:
                assert len(one.table.blocks) * BLOCK >= one.computed
            else:
                assert not one.table.blocks


@given(load=arrivals, budget=st.integers(1, 40), seqs=st.integers(1, 5))
def test_whatever_comes(load: list[Arrival], budget: int, seqs: int) -> None:
    engine = scheduler(budget, seqs=seqs, blocks=BLOCKS, block_size=BLOCK)
    watched = Watched(engine, budget, seqs, load)
    watched.run()
    for one in watched.sequences:
        assert one.state in (State.FINISHED, State.ABORTED)
        if one.state is State.FINISHED:
            assert one.generated == one.max_tokens
    # First come, first served: nobody is admitted before one who came earlier.
    places = [watched.sequences.index(one) for one in watched.admitted]
    assert places == sorted(places)
    assert engine.cache.used_blocks == 0
    assert engine.preemptions == sum(one.preemptions for one in watched.sequences)


@given(
    load=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=1, max_size=10),
    budgets=st.tuples(st.integers(1, 100), st.integers(1, 100)),
    seqs=st.integers(1, 5),
    max_tokens=st.integers(1, 5),
)
def test_hits_do_not_depend_on_the_budget(
    load: list[tuple[int, int]], budgets: tuple[int, int], seqs: int, max_tokens: int
) -> None:
    """As long as nothing is evicted."""
    found = []
    for budget in budgets:
        engine = scheduler(budget, seqs=seqs)
        sequences = [
            sequence(own, max_tokens, shared=shared, name=number)
            for number, (shared, own) in enumerate(load)
        ]
        for one in sequences:
            engine.add(one)
        while engine.has_work:
            engine.complete(engine.schedule(), answer.token)
        found.append([one.cached for one in sequences])
    assert found[0] == found[1]
