"""The recorded sweep, and what docs/real-engine.md says of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from benchmarks.engine.cells import Plan

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "real-engine.md"
ROW = re.compile(r"^\| (\d[\d,]*) tokens, (cold|cached), (one|four) at a time \| (.+) \|$")


@pytest.fixture(scope="module")
def sweep() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        (ROOT / "benchmarks" / "engine" / "results" / "sweep.json").read_text()
    )
    return content


def test_all_of_the_plan_was_measured(sweep: dict[str, Any]) -> None:
    plan = Plan()
    kinds = {
        (cell["budget"], cell["round"], cell["prompt"], cell["at_once"], cell["cache"])
        for cell in sweep["cells"]
    }
    rounds, caches = range(plan.rounds), ("cold", "cached")
    assert kinds == {
        (budget, number, prompt, at_once, cache)
        for budget in plan.budgets
        for number in rounds
        for prompt in plan.prompts
        for at_once in plan.at_once
        for cache in caches
    }
    assert all(len(cell["ttft_ms"]) == plan.requests for cell in sweep["cells"])


def test_what_is_cached_does_not_depend_on_the_budget(sweep: dict[str, Any]) -> None:
    for length in Plan().prompts:
        shares = {
            (cell["cache"], cell["cached_share"])
            for cell in sweep["cells"]
            if cell["prompt"] == length
        }
        assert shares == {("cold", 0.0), ("cached", round((length - 1) // 128 * 128 / length, 4))}


def test_the_table_is_what_was_measured(sweep: dict[str, Any]) -> None:
    """Medians of the rounds' medians, in milliseconds."""
    rows = [match for line in PAGE.read_text().splitlines() if (match := ROW.match(line))]
    assert len(rows) == len(Plan().prompts) * 4
    for row in rows:
        length, at_once = int(row[1].replace(",", "")), {"one": 1, "four": 4}[row[3]]
        wanted = []
        for budget in Plan().budgets:
            key = (budget, length, at_once, row[2])
            rounds = [
                median(cell["ttft_ms"])
                for cell in sweep["cells"]
                if (cell["budget"], cell["prompt"], cell["at_once"], cell["cache"]) == key
            ]
            wanted.append(f"{median(rounds):,.0f}")
        assert row[4].split(" | ") == wanted, row[0]
