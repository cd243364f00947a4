"""Results survive their file, and a file that is none is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.bench.results import (
    ArmSummary,
    BenchResult,
    ClientCost,
    ErrorKind,
    Load,
    Round,
    Sample,
    Spread,
    decode,
    encode,
    read,
)
from gateway.errors import GatewayError

LOAD = Load(
    workload="shared-prefix",
    api="chat",
    requests=2,
    concurrency=2,
    request_rate=None,
    burstiness=1.0,
    output_tokens=1,
    rounds=3,
    seed=0,
)
SAMPLES = (
    Sample(number=0, due_ms=0.5, ttft_ms=100.25, e2e_ms=140.0, itl_ms=(20.0, 19.75), status=200),
    Sample(number=1, due_ms=1.5, status=429, error=ErrorKind.STATUS, detail="slow down"),
)
ROUND = Round(
    arm="a",
    number=1,
    position=0,
    started="2026-01-01T00:00:00+00:00",
    figures={"p90_ttft_ms": 100.25, "request_goodput": None},
    client=ClientCost(cpu_ms_per_request=0.3, cpu_share=0.1, send_ms=0.1),
    samples=SAMPLES,
)
RESULT = BenchResult(
    date="2026-01-01T00:00:00+00:00",
    url="http://127.0.0.1:8080",
    model="m",
    load=LOAD,
    arms=(
        ArmSummary(
            arm="a",
            rounds=1,
            requests=2,
            figures={"p90_ttft_ms": Spread(median=1.0, low=1.0, high=1.0, values=(1.0, None))},
            errors={"status 429": 1},
            engine={"max_num_batched_tokens": 512},
        ),
    ),
    rounds=(ROUND,),
)


def test_a_result_is_the_same_after_its_file() -> None:
    assert decode(encode(RESULT), "x.json") == RESULT


def test_a_file_that_keeps_fewer_options_reads_and_says_so() -> None:
    written = json.loads(encode(RESULT))
    assert RESULT.load.warm_up is None and not RESULT.load.whole
    early = ["workload", "api", "requests", "concurrency", "request_rate", "burstiness"]
    early += ["output_tokens", "rounds", "seed", "slo_ttft_ms"]
    written["load"] = {name: written["load"][name] for name in early}
    del written["sources"]
    found = decode(json.dumps(written).encode(), "x.json")
    assert found == RESULT
    assert (found.load.cold, found.load.prefix_tokens, found.load.extra) == (None, None, ())


def test_what_was_not_measured_is_null_in_the_file() -> None:
    written = json.loads(encode(RESULT))
    assert written["rounds"][0]["figures"]["request_goodput"] is None
    assert written["rounds"][0]["samples"][1]["ttft_ms"] is None
    assert written["rounds"][0]["client"]["stamp_ms"] is None


def test_the_file_says_what_it_is_first() -> None:
    assert list(json.loads(encode(RESULT)))[:2] == ["format", "version"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{}", "no result of gateway bench"),
        (b"nonsense", "no result of gateway bench"),
        (b"[" * 100_000, "no result of gateway bench"),
        (b'{"format":"ttft-gateway-bench","version":7}', "version 7"),
        (b'{"format":"ttft-gateway-bench","version":1}', "missing required field"),
    ],
)
def test_another_file_is_refused_in_words(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_bytes(content)
    with pytest.raises(GatewayError, match=words) as raised:
        read(file)
    assert raised.value.message.startswith("out.json")
