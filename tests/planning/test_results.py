"""Bench results as traffic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.bench.results import ErrorKind, encode
from gateway.errors import GatewayError
from gateway.planning.results import measured
from tests.planning.made import family, result, write

(CLOSED,) = family(64)
(OPEN,) = family(64, users=None, rate=4.0)


@pytest.mark.parametrize("traffic", [CLOSED, OPEN], ids=["closed", "open"])
def test_what_was_sent_is_read_back(tmp_path: Path, traffic: object) -> None:
    assert isinstance(traffic, type(CLOSED))
    (found,) = measured(write(tmp_path / "r.json", traffic, max_num_batched_tokens=64)).traffic
    assert (found.name, found.chunk, found.users) == ("r, round 1", 64, traffic.users)
    for one, wanted in zip(found.requests, traffic.requests, strict=True):
        assert (one.prompt, one.cached, one.output) == (wanted.prompt, wanted.cached, wanted.output)
        assert one.at == pytest.approx(wanted.at)
    ramp_up = traffic.users or 0
    assert [one.ttft for one in found.requests[:ramp_up]] == [None] * ramp_up
    for one, wanted in list(zip(found.requests, traffic.requests, strict=True))[ramp_up:]:
        assert one.ttft == pytest.approx(wanted.ttft)
        assert one.tpot == pytest.approx(wanted.tpot)


def test_users_with_one_request_each_are_all_there_is(tmp_path: Path) -> None:
    few = replace(CLOSED, requests=CLOSED.requests[: CLOSED.users])
    (found,) = measured(write(tmp_path / "r.json", few, max_num_batched_tokens=64)).traffic
    assert all(one.ttft is not None for one in found.requests)


def test_a_named_chunk_size_goes_before_the_files(tmp_path: Path) -> None:
    file = write(tmp_path / "r.json", CLOSED, max_num_batched_tokens=64)
    assert [one.chunk for one in measured(file, 512).traffic] == [512]


def test_a_file_that_does_not_tell_it_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = write(tmp_path / "r.json", CLOSED)
    assert measured(file, 512)
    with pytest.raises(GatewayError, match=r"does not say the max_num_batched_tokens of a: name"):
        measured(file)


def test_what_else_the_engine_tells_is_kept(tmp_path: Path) -> None:
    file = write(tmp_path / "r.json", CLOSED, max_num_batched_tokens=64, block_size=32)
    found = measured(file)
    assert (found.block_size, found.max_num_seqs) == (32, None)


def test_failed_requests_are_left_out(tmp_path: Path) -> None:
    whole = result(CLOSED, max_num_batched_tokens=64)
    samples = whole.rounds[0].samples
    broken = (replace(samples[0], error=ErrorKind.CUT), replace(samples[1], ttft_ms=None))
    rounds = (replace(whole.rounds[0], samples=broken + samples[2:]),)
    file = tmp_path / "r.json"
    file.write_bytes(encode(replace(whole, rounds=rounds)))
    (found,) = measured(file).traffic
    assert len(found.requests) == len(samples) - 2
    file.write_bytes(encode(replace(whole, rounds=(replace(rounds[0], samples=broken),))))
    with pytest.raises(
        GatewayError, match=r"r\.json holds no streamed reply with its token counts"
    ):
        measured(file)


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_tokens": -1},
        {"prompt_tokens": 10**9},
        {"completion_tokens": 10**9},
        {"cached_tokens": -1},
        {"ttft_ms": -1.0},
        {"e2e_ms": 1e15},
    ],
)
def test_what_no_engine_does_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    whole = result(CLOSED, max_num_batched_tokens=64)
    first, *rest = whole.rounds[0].samples
    rounds = (replace(whole.rounds[0], samples=(replace(first, **changes), *rest)),)
    file = tmp_path / "r.json"
    file.write_bytes(encode(replace(whole, rounds=rounds)))
    with pytest.raises(GatewayError, match=r"r\.json, round 1, request 0: tokens or times that no"):
        measured(file)


def test_rounds_of_an_arm_that_is_not_there_are_refused(tmp_path: Path) -> None:
    whole = result(CLOSED, max_num_batched_tokens=64)
    file = tmp_path / "r.json"
    file.write_bytes(encode(replace(whole, rounds=(replace(whole.rounds[0], arm="x"),))))
    with pytest.raises(GatewayError, match="rounds of 'x', which is none of its arms"):
        measured(file)


def test_one_chunk_size_is_not_that_of_arms_that_differ(tmp_path: Path) -> None:
    whole = result(CLOSED, max_num_batched_tokens=64)
    other = replace(whole.arms[0], arm="b", engine={"max_num_batched_tokens": 512})
    file = tmp_path / "r.json"
    file.write_bytes(encode(replace(whole, arms=(*whole.arms, other))))
    with pytest.raises(GatewayError, match=r"chunk sizes of 64, 512, so .* without 64="):
        measured(file, 64)
