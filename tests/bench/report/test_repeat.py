"""A report repeats its load, in words and as the command that sends it again."""

from __future__ import annotations

import shlex
from dataclasses import replace

from gateway.bench.report import repeat
from gateway.bench.results import BenchResult, Load, Sources
from tests.bench.report.made import LOAD, result_of, two_arms

WHOLE = replace(LOAD, prefix_tokens=1600, question_tokens=20, cold=False, timeout=600, warm_up=True)


def words(result: BenchResult) -> list[str]:
    return shlex.split(repeat.command(result).replace("\\\n", " "))


def line(load: Load) -> str:
    """Of one arm, without thresholds."""
    return shlex.join(words(replace(result_of([]), load=load)))


def test_the_command_does_the_run_again() -> None:
    load = replace(WHOLE, request_rate=2.5, concurrency=None, slo_ttft_ms=500.0)
    sources = Sources(
        engines={"chunk-64": "http://e:8001"},
        exporters=("http://h:9400/metrics",),
        gpus={"0": "chunk-64"},
    )
    found = two_arms(load=load, model="my model", url="http://h:1", sources=sources)
    assert words(found) == shlex.split(
        "gateway bench --url http://h:1 --model 'my model' --arm chunk-512 --arm chunk-64 "
        "--api chat --workload shared-prefix --requests 10 --rounds 3 --seed 7 "
        "--request-rate 2.5 --burstiness 1 --output-tokens 1 --prefix-tokens 1600 "
        "--question-tokens 20 --timeout 600 --slo-ttft-ms 500 --engine chunk-64=http://e:8001 "
        "--dcgm http://h:9400/metrics --gpu chunk-64=0 --threshold p90=350 --threshold p99=off "
        "--threshold memory=0.7 --threshold gpu=0.78 --threshold hit-rate=0.8"
    )


def test_each_option_that_shaped_the_load_is_in_the_command() -> None:
    cold = line(replace(WHOLE, cold=True, warm_up=False))
    assert cold.endswith("--timeout 600 --cold --no-warm-up")
    sessions = replace(WHOLE, workload="sessions", cold=None, turns=4, think=0.1 + 0.2)
    assert "--turns 4 --think 0.30000000000000004" in line(sessions)
    log = replace(LOAD, workload="replay", dataset="my log.jsonl", output_tokens=None)
    assert "--concurrency 32 --dataset 'my log.jsonl'" in line(log)
    assert "--output-tokens" not in line(log) and "--prefix-tokens" not in line(log)


def test_values_of_further_fields_are_left_to_be_put_in() -> None:
    load = replace(WHOLE, extra=("top_k", 'a"b'))
    assert words(two_arms(load=load))[-11] == '{"top_k": …, "a\\"b": …}'
    assert repeat.VALUES in repeat.notes(load) and repeat.VALUES not in repeat.notes(WHOLE)


def test_what_an_early_file_does_not_keep_is_said() -> None:
    assert repeat.notes(LOAD)[0] == repeat.OLDER
    assert "--prefix-tokens" in repeat.OLDER and "--prefix-tokens" not in line(LOAD)
    assert repeat.OLDER not in repeat.notes(WHOLE)


def test_every_load_is_described() -> None:
    found = dict(repeat.described(replace(WHOLE, workload="sessions", turns=4, think=0.5)))
    assert found == {
        "Workload": "sessions",
        "API": "chat",
        "Sent": "closed loop, 32 at a time",
        "Requests a round": "10",
        "Rounds": "3, after a warm-up",
        "Long prompt": "about 1,600 tokens",
        "Question": "about 20 tokens",
        "Turns of a session": "4, 0.5 s apart on average",
        "Output tokens": "at most 1",
        "Timeout": "600 s",
        "Seed": "7",
    }
    log = replace(LOAD, workload="replay", dataset="a.jsonl", output_tokens=None, warm_up=False)
    rates = dict(repeat.described(replace(log, request_rate=20.0, burstiness=0.5, concurrency=8)))
    assert rates["Sent"] == "open loop, 20 arrivals a second of burstiness 0.5, at most 8 at a time"
    assert (rates["Data set"], rates["Output tokens"]) == ("a.jsonl", "as the data set has")
    assert rates["Rounds"] == "3, without a warm-up"
