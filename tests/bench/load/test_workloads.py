"""Texts: what is shared is shared, and what is new is new."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bench.load.workloads import Workload, no_shared_prefix, sessions, shared_prefix
from gateway.simulator.tokenizer import encode

BLOCK = 64
"""Characters: a prefix cache knows nothing shorter."""


def of(cold: bool = False, seed: int = 1) -> Workload:
    return shared_prefix(50, 1, seed, prefix=6400, question=80, cold=cold)


def test_the_articles_prompt_has_about_1600_tokens() -> None:
    (talk, *_) = of().talks(1)
    assert len(encode(talk.system)) == pytest.approx(1600, abs=5)


def test_all_requests_of_all_rounds_share_one_prompt() -> None:
    assert len({talk.system for n in range(4) for talk in of().talks(n)}) == 1


def test_cold_rounds_have_a_prompt_of_their_own() -> None:
    systems = [{talk.system for talk in of(cold=True).talks(n)} for n in range(3)]
    assert [len(found) for found in systems] == [1, 1, 1]
    assert len(set.union(*systems)) == 3


def test_no_question_is_asked_twice() -> None:
    asked = [talk.questions[0] for n in range(4) for talk in of().talks(n)]
    assert len(set(asked)) == 200


def test_a_round_is_the_same_for_every_arm() -> None:
    assert of().talks(2) == of().talks(2)


def test_another_seed_has_other_texts() -> None:
    assert of(seed=1).talks(1)[0].system != of(seed=2).talks(1)[0].system


def test_prompts_without_a_shared_prefix_differ_within_the_first_block() -> None:
    workload = no_shared_prefix(100, 1, 1, prefix=6400, question=80)
    heads = {talk.system[:BLOCK] for n in range(4) for talk in workload.talks(n)}
    assert len(heads) == 400


@given(requests=st.integers(1, 60), turns=st.integers(1, 7), number=st.integers(0, 5))
def test_sessions_make_exactly_the_requests_asked_for(
    requests: int, turns: int, number: int
) -> None:
    talks = sessions(requests, 1, 1, turns=turns, prefix=100, question=20).talks(number)
    assert sum(len(talk.questions) for talk in talks) == requests
    assert all(1 <= len(talk.questions) <= turns for talk in talks)
    assert len({talk.session for talk in talks}) == len(talks)
