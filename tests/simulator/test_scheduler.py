"""Schedules worked out by hand: what each step computes, as (who, context, tokens)."""

from __future__ import annotations

import pytest

from gateway.simulator import answer
from gateway.simulator.scheduler import Scheduler, Step
from gateway.simulator.sequence import Sequence, State
from tests.simulator.loads import scheduler, sequence

Row = list[tuple[str, int, int]]


def steps(engine: Scheduler, **named: Sequence) -> list[Row]:
    """Run `named` to their end, all of them there from the beginning."""
    names = {one: name for name, one in named.items()}
    for one in named.values():
        engine.add(one)
    rows: list[Row] = []
    while engine.has_work:
        step = engine.schedule()
        rows.append([(names[c.sequence], c.context, c.tokens) for c in step.chunks])
        engine.complete(step, answer.token)
    return rows


def step(engine: Scheduler) -> Step:
    done = engine.schedule()
    engine.complete(done, answer.token)
    return done


def test_a_long_prompt_is_cut_by_the_budget_and_the_next_fills_the_rest() -> None:
    found = steps(scheduler(10), a=sequence(12, 2), b=sequence(5, 2, name=1))
    assert found == [
        [("a", 0, 10)],
        [("a", 10, 2), ("b", 0, 5)],
        [("a", 12, 1), ("b", 5, 1)],
    ]


def test_decodes_take_their_budget_first_so_chunks_are_smaller_than_the_flag() -> None:
    found = steps(scheduler(4), a=sequence(2, 4), b=sequence(10, 1, name=1))
    assert found == [
        [("a", 0, 2), ("b", 0, 2)],
        [("a", 2, 1), ("b", 2, 3)],
        [("a", 3, 1), ("b", 5, 3)],
        [("a", 4, 1), ("b", 8, 2)],
    ]


def test_a_running_prefill_goes_before_a_decode_that_was_admitted_later() -> None:
    found = steps(scheduler(4), a=sequence(10, 1), b=sequence(1, 3, name=1))
    assert found == [
        [("a", 0, 4)],
        [("a", 4, 4)],
        [("a", 8, 2), ("b", 0, 1)],
        [("b", 1, 1)],
        [("b", 2, 1)],
    ]


def test_no_more_than_max_num_seqs_run() -> None:
    found = steps(scheduler(10, seqs=1), a=sequence(3), b=sequence(3, name=1))
    assert found == [[("a", 0, 3)], [("b", 0, 3)]]


def test_a_threshold_leaves_room_beside_a_long_prompt() -> None:
    found = steps(scheduler(10, threshold=4), a=sequence(9), b=sequence(6, name=1))
    assert found == [
        [("a", 0, 4), ("b", 0, 4)],
        [("a", 4, 4), ("b", 4, 2)],
        [("a", 8, 1)],
    ]


def test_a_shared_prompt_is_hit_in_the_very_step_that_computes_it() -> None:
    first, second = sequence(2, shared=8), sequence(3, shared=8, name=1)
    assert steps(scheduler(20), a=first, b=second) == [[("a", 0, 10), ("b", 8, 3)]]
    assert (first.cached, second.cached) == (0, 8)


def test_a_block_half_computed_by_one_chunk_is_hittable_with_the_next() -> None:
    first, second = sequence(2, shared=8), sequence(3, shared=8, name=1)
    assert steps(scheduler(6), a=first, b=second) == [
        [("a", 0, 6)],
        [("a", 6, 4), ("b", 8, 2)],
        [("b", 10, 1)],
    ]


def test_short_of_blocks_the_last_running_is_preempted_and_computed_again() -> None:
    first, second = sequence(7, 4), sequence(7, 4, name=1)
    engine = scheduler(20, blocks=4)
    assert steps(engine, a=first, b=second) == [
        [("a", 0, 7), ("b", 0, 7)],
        [("a", 7, 1), ("b", 7, 1)],
        # Token 9 needs a third block: b loses both of its own, and a takes the second.
        [("a", 8, 1)],
        # One block is free; b needs two, beside its first one, which is still cached.
        [("a", 9, 1)],
        [("b", 4, 5)],
        [("b", 9, 1)],
    ]
    assert (first.preemptions, second.preemptions, engine.preemptions) == (0, 1, 1)
    # A second admission is no second lookup: it says nothing about traffic.
    assert (engine.prefix_queries, engine.prefix_hits, second.cached) == (14, 0, 0)


def test_nobody_is_admitted_in_a_step_that_preempts() -> None:
    engine = scheduler(20, blocks=5)
    first, second, short = sequence(8, 3), sequence(8, 3, name=1), sequence(1, name=2)
    engine.add(first)
    engine.add(second)
    step(engine)
    engine.add(short)
    # a takes the fifth block; b finds none and is the last running itself.
    done = step(engine)
    assert [chunk.sequence for chunk in done.chunks] == [first]
    assert done.preempted == [second]
    # b's two blocks are free, enough for the short one, which waits all the same.
    assert (engine.cache.free_blocks, engine.waiting) == (2, 2)
    # And the preempted one is in front of it.
    assert second.state is State.WAITING
    rest = [chunk.sequence for _ in range(2) for chunk in step(engine).chunks]
    assert rest == [first, second, short]


def test_a_head_that_does_not_fit_holds_up_those_behind_it() -> None:
    found = steps(
        scheduler(20, blocks=4),
        a=sequence(8, 2),
        b=sequence(12, name=1),
        c=sequence(4, name=2),
    )
    assert found == [[("a", 0, 8)], [("a", 8, 1)], [("b", 0, 12), ("c", 0, 4)]]


def test_a_whole_prompt_must_fit_though_its_first_chunk_would() -> None:
    engine = scheduler(4, blocks=4)
    engine.add(sequence(8, 8))
    step(engine)
    step(engine)
    engine.add(sequence(12, name=1))
    assert [chunk.tokens for chunk in step(engine).chunks] == [1]
    assert engine.waiting == 1


@pytest.mark.parametrize(("block_size", "hits"), [(16, 1008), (128, 896)])
def test_a_repeated_prompt_hits_all_but_its_last_block(block_size: int, hits: int) -> None:
    engine = scheduler(2048, block_size=block_size)
    again = sequence(1024)
    steps(engine, a=sequence(1024), b=again)
    assert again.cached == hits
    assert (engine.prefix_queries, engine.prefix_hits) == (2048, hits)


@pytest.mark.parametrize("chunk", [50, 64, 100, 127, 512, 1000, 2048])
@pytest.mark.parametrize(("block_size", "hits"), [(16, 992), (128, 896)])
def test_no_chunk_size_changes_hits(chunk: int, block_size: int, hits: int) -> None:
    engine = scheduler(chunk, block_size=block_size)
    again = sequence(1000)
    steps(engine, a=sequence(1000), b=again)
    assert again.cached == hits


def test_a_prefix_shorter_than_a_block_is_never_hit() -> None:
    again = sequence(20, shared=15, name=1)
    steps(scheduler(64, block_size=16), a=sequence(20, shared=15), b=again)
    assert again.cached == 0


def test_an_answer_is_hit_by_the_next_turn() -> None:
    engine = scheduler(64)
    first = sequence(6, 7)
    steps(engine, a=first)
    # The last token was sampled, but never computed: 12 of 13 are there.
    second = Sequence(first.tokens, 1)
    steps(engine, b=second)
    assert second.cached == 12


def test_aborting_a_waiting_one_takes_it_from_the_queue() -> None:
    engine = scheduler(4)
    first, second = sequence(4), sequence(4, name=1)
    engine.add(first)
    engine.add(second)
    engine.abort(second)
    assert (engine.waiting, second.finish_reason) == (1, "abort")
    step(engine)
    assert not engine.has_work


def test_aborting_in_the_middle_of_a_step_frees_place_and_blocks_at_once() -> None:
    engine = scheduler(20, seqs=2)
    first, second = sequence(8, 5), sequence(8, 5, name=1)
    engine.add(first)
    engine.add(second)
    planned = engine.schedule()
    assert engine.cache.used_blocks == 4
    engine.abort(first)
    assert (engine.cache.used_blocks, engine.running) == (2, [second])
    assert engine.complete(planned, answer.token) == [second]
    assert first.generated == 0
    engine.abort(first)
    assert first.state is State.ABORTED


def test_what_can_never_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="17 tokens do not fit"):
        scheduler(8, blocks=4).add(sequence(16, 1))
