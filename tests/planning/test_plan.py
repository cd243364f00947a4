"""What another chunk size would do, against a machine that knows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import GatewayError
from gateway.planning.calibration import Calibration, calibrate, encode, read
from gateway.planning.fit import Prediction
from gateway.planning.log import Recorded
from gateway.planning.plan import Answer, Figure, advice, answer, observed
from gateway.planning.traffic import Traffic
from tests.planning.made import KNOWN, family, requests, timed

CALIBRATION = calibrate(family(64, 512), ["a", "b"], block_size=16, max_num_seqs=32)


def traffic(chunk: int, name: str = "b0", rate: float = 2.0) -> Traffic:
    its = requests(80, seed=7, rate=rate)
    return timed(Traffic(name=name, chunk=chunk, requests=its))


def values(found: Answer) -> list[float]:
    return [one.value for one in found.figures]


def test_another_chunk_size_is_foretold() -> None:
    """Recorded at 512, asked about 128, compared with what 128 really does."""
    recorded = Recorded(engines=(traffic(512), traffic(512, "b1")), left_out=0)
    truth = Recorded(engines=(traffic(128), traffic(128, "b1")), left_out=0)
    foretold = answer(recorded, CALIBRATION, 128)
    assert values(foretold) == pytest.approx(values(observed(truth)), rel=0.03)
    assert values(foretold)[0] > 1.2 * values(observed(recorded))[0]
    assert not foretold.behind


def held_out(chunk: int, measured: float, predicted: float) -> Prediction:
    return Prediction(
        chunk=chunk, figure="ttft", percent=50, measured=measured, predicted=predicted
    )


def test_beside_it_stands_how_far_off_the_truth_may_be() -> None:
    """100 ms had been predicted of what took 200: a next 100 ms may be 200 as well."""
    seen = (held_out(64, measured=0.2, predicted=0.1), held_out(512, measured=0.4, predicted=0.5))
    known = replace(CALIBRATION, held_out=seen)
    assert known.error("ttft") == pytest.approx(0.5)
    recorded = Recorded(engines=(traffic(512),), left_out=0)

    def beside(chunk: int, calibration: Calibration = known) -> list[float | None]:
        return [one.margin for one in answer(recorded, calibration, chunk).figures]

    assert beside(64) == [pytest.approx(1.0), None, None, None]
    assert beside(512) == [pytest.approx(0.2), None, None, None]
    assert beside(128) == beside(64), "the worst of all where it was not held out"
    assert None not in beside(128, CALIBRATION)
    assert beside(128, replace(CALIBRATION, held_out=())) == [None] * 4


def test_an_engine_that_cannot_keep_up_is_named() -> None:
    busy = Recorded(engines=(traffic(2048, rate=12.0), traffic(2048, "calm", 2.0)), left_out=0)
    assert answer(busy, CALIBRATION, 32).behind == ("b0",)
    assert not answer(busy, CALIBRATION, 2048).behind


def test_an_engine_whose_answers_came_whole_keeps_up_as_well() -> None:
    """Nothing is known of its tokens' times; how long its answers took is."""
    its = tuple(replace(one, at=0.0) for one in requests(6, seed=7))
    whole = timed(Traffic(name="b0", chunk=512, requests=its))
    unseen = tuple(replace(one, ttft=None, tpot=None) for one in whole.requests)
    recorded = Recorded(engines=(replace(whole, requests=unseen),), left_out=0)
    assert not answer(recorded, CALIBRATION, 512).behind


def test_a_calibration_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(encode(CALIBRATION))
    assert read(file) == CALIBRATION
    assert CALIBRATION.machine.latency.base == pytest.approx(KNOWN.latency.base, rel=0.02)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "c.json is no calibration"),
        (b"{}", "write one with `gateway sim --fit RESULTS --json c.json`"),
        (b'{"format":"ttft-gateway-calibration","version":2}', "version 2 .* reads version 1"),
        (b'{"format":"ttft-gateway-calibration","version":1}', "c.json is no calibration: "),
        (b"[" * 100_000, "c.json is no calibration"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(content)
    with pytest.raises(GatewayError, match=message):
        read(file)


def test_a_calibration_knows_what_it_rests_on() -> None:
    found: Calibration = CALIBRATION
    assert (found.chunks, found.requests, found.sources) == ((64, 512), 120, ("a", "b"))
    first = [abs(one.error) for one in found.held_out if one.figure == "ttft"]
    assert found.error("ttft") == max(first)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("machine.block_size", 0),
        ("machine.max_num_seqs", 0),
        ("machine.max_num_seqs", 10**12),
        ("machine.overhead", -1.0),
        ("machine.latency.base", -1.0),
        ("machine.latency.per_token", 1e308),
        ("machine.latency", {"base": 0.0, "per_token": 0.0, "per_pair": 0.0}),
        ("chunks", []),
        ("held_out.0.measured", 0.0),
        ("held_out.0.predicted", 0.0),
    ],
)
def test_what_no_fit_writes_is_refused(tmp_path: Path, place: str, value: object) -> None:
    file = tmp_path / "c.json"
    body = json.loads(encode(CALIBRATION))
    *way, last = place.split(".")
    inner: Any = body
    for name in way:
        inner = inner[int(name) if name.isdecimal() else name]
    inner[last] = value
    file.write_text(json.dumps(body))
    with pytest.raises(GatewayError, match=r"c\.json (is no calibration|was held against)"):
        read(file)


def answered(chunk: int, value: float, margin: float | None, *behind: str) -> Answer:
    return Answer(
        chunk=chunk,
        figures=(Figure(name="ttft", percent=90, value=value, margin=margin),),
        behind=behind,
    )


def test_the_advice_names_the_lowest_and_what_the_errors_do_not_tell_from_it() -> None:
    three = [answered(64, 2.0, 0.1), answered(256, 1.1, 0.1), answered(512, 1.0, 0.1)]
    wanted = "Lowest TTFT P90: chunk size 512; within the errors it may be 256 as well."
    assert advice(three) == [wanted]
    assert advice([*three, answered(1024, 0.5, 0.1, "b0")]) == [wanted], "it cannot keep up"
    assert advice([answered(64, 2.0, None), answered(256, 1.0, None)]) == [
        "Lowest TTFT P90: chunk size 256."
    ]
    assert advice(three[:1]) == [], "one has nothing to be compared with"
