"""Options go together, and the result keeps those that shaped the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from gateway.bench.load.speech import PATHS
from gateway.bench.load.workloads import LONGEST
from gateway.bench.options import (
    SHAPING,
    WORKLOADS,
    ApiName,
    Options,
    WorkloadName,
    check,
    load_of,
)

EVERYTHING: dict[str, Any] = {
    "dataset": Path("/srv/logs/access.jsonl"),
    "prefix_tokens": 10,
    "question_tokens": 20,
    "cold": True,
    "turns": 4,
    "think": 0.5,
}


def test_the_command_line_names_every_workload_and_every_api() -> None:
    assert get_args(WorkloadName) == tuple(WORKLOADS)
    assert get_args(ApiName) == tuple(PATHS)
    assert set(EVERYTHING) == SHAPING


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_load_keeps_what_its_workload_has_a_use_for(name: WorkloadName) -> None:
    own = WORKLOADS[name].options
    given = {option: value for option, value in EVERYTHING.items() if option in own}
    load = load_of(Options(workload=name, extra={"top_k": 1, "user": "secret"}, **given))
    expected = {option: given.get(option) for option in EVERYTHING}
    expected["dataset"] = "access.jsonl" if "dataset" in own else None
    assert {option: getattr(load, option) for option in EVERYTHING} == expected
    assert load.output_tokens == (None if "dataset" in own else 1)
    assert load.extra == ("top_k", "user")
    assert (load.timeout, load.warm_up, load.whole) == (600.0, True, True)


def test_a_files_name_that_is_no_text_is_kept_as_far_as_it_is() -> None:
    load = load_of(Options(workload="custom", dataset=Path("a\udcff.jsonl")))
    assert load.dataset == "a?.jsonl"


@pytest.mark.parametrize("name", ["replay", "sharegpt", "custom"])
def test_a_workload_that_reads_a_file_wants_its_name(name: WorkloadName) -> None:
    with pytest.raises(ValueError, match=f"--workload {name} reads a file: name it with --dataset"):
        check(Options(workload=name))
    check(Options(workload=name, dataset=Path("x"), requests=10**6, prefix_tokens=LONGEST))


def test_a_round_that_no_memory_holds_is_refused_and_one_that_fits_is_not() -> None:
    check(Options(requests=49, prefix_tokens=LONGEST))
    with pytest.raises(ValueError, match="51 requests of about 10,000,020 tokens each"):
        check(Options(requests=51, prefix_tokens=LONGEST))
