"""Bench results as traffic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.bench.results import BenchResult, ErrorKind, Sample, encode
from gateway.errors import GatewayError
from gateway.planning.fit import fit
from gateway.planning.results import measured
from gateway.planning.traffic import Traffic
from tests.planning.made import KNOWN, family, result, write

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


def of_backends(*parts: Traffic) -> BenchResult:
    """One arm's turn, each part on a backend of its own."""
    whole = result(parts[0], max_num_batched_tokens=parts[0].chunk)
    found: list[Sample] = []
    for number, part in enumerate(parts):
        samples = result(part).rounds[0].samples
        found += [replace(one, arm="a", backend=f"b{number}") for one in samples]
    found.sort(key=lambda one: one.due_ms)
    samples = tuple(replace(one, number=number) for number, one in enumerate(found))
    return replace(whole, rounds=(replace(whole.rounds[0], samples=samples),))


def test_each_backend_of_an_arm_is_an_engine_of_its_own(tmp_path: Path) -> None:
    """As one engine with twice the load, their steps seemed to take a fraction of their time."""
    parts = [*family(64, 512, users=None, rate=4.0), *family(64, 512, users=None, rate=4.0, seed=9)]
    files = []
    for chunk in (64, 512):
        file = tmp_path / f"{chunk}.json"
        file.write_bytes(encode(of_backends(*(one for one in parts if one.chunk == chunk))))
        files.append(measured(file))
    found = [traffic for one in files for traffic in one.traffic]
    assert [one.name for one in found] == [
        *("64, round 1, b0", "64, round 1, b1"),
        *("512, round 1, b0", "512, round 1, b1"),
    ]
    assert [len(one.requests) for one in found] == [60] * 4
    fitted = fit(found, block_size=KNOWN.block_size, max_num_seqs=KNOWN.max_num_seqs).latency
    assert fitted.base == pytest.approx(KNOWN.latency.base, rel=0.06)
    assert fitted.per_token == pytest.approx(KNOWN.latency.per_token, rel=0.06)


def test_users_of_several_backends_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_bytes(encode(of_backends(CLOSED, CLOSED)))
    with pytest.raises(GatewayError, match=r"a had 2 backends, .* or at a --request-rate"):
        measured(file)


def test_another_arms_requests_are_no_part_of_it(tmp_path: Path) -> None:
    """They were computed in chunks of another size."""
    whole = of_backends(CLOSED)
    first, *rest = whole.rounds[0].samples
    rounds = (replace(whole.rounds[0], samples=(replace(first, arm="b", backend="b9"), *rest)),)
    file = tmp_path / "r.json"
    file.write_bytes(encode(replace(whole, rounds=rounds)))
    (found,) = measured(file).traffic
    assert len(found.requests) == len(rest)


@pytest.mark.parametrize(
    ("traffic", "changes", "message"),
    [
        (CLOSED, {"concurrency": 0}, "says that 0 users sent its requests"),
        (CLOSED, {"turns": 3, "think": 0.5}, "users paused .* without --think"),
        (OPEN, {"concurrency": 8}, "at most 8 at a time, .* without --concurrency"),
    ],
    ids=["nobody", "pauses", "a limit"],
)
def test_a_load_that_no_replay_can_follow_is_refused(
    tmp_path: Path, traffic: Traffic, changes: dict[str, Any], message: str
) -> None:
    """Its engines would seem slower than they are: who waited or paused is not their doing."""
    whole = result(traffic, max_num_batched_tokens=64)
    file = tmp_path / "r.json"
    file.write_bytes(encode(replace(whole, load=replace(whole.load, **changes))))
    with pytest.raises(GatewayError, match=rf"r\.json.*{message}"):
        measured(file)


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
