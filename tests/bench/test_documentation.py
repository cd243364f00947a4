"""docs/bench.md: each of its commands runs, and its figures are those of the code."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from math import comb
from pathlib import Path

import pytest

from gateway.bench.analysis.cost import MOST
from gateway.bench.analysis.summary import FEWEST_ROUNDS
from gateway.bench.analysis.thresholds import THRESHOLDS, defaults
from gateway.bench.options import WORKLOADS, Options
from tests.simulator.running import serving
from tests.support.gateway_process import command
from tests.support.running import ADMIN_KEY, KEY, configuration, running

PAGE = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
ENGINE = "http://127.0.0.1:8001"
BRIEF = ("--requests", "4", "--rounds", "1", "--no-warm-up")
LOGGED = {"outcome": "ok", "stream": True, "session": "s", "prompt_tokens": 99}


def commands() -> Iterator[str]:
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        yield from (line for line in block.splitlines() if line.startswith("gateway "))


def files(folder: Path) -> dict[str, str]:
    """The files that the commands name, and where they are."""
    turns = [{"value": "Why?"}, {"value": "Because."}]
    contents = {
        "access.jsonl": json.dumps(LOGGED) + "\n",
        "sharegpt.json": json.dumps([{"conversations": turns}]),
        "prompts.jsonl": json.dumps({"prompt": "Why?"}),
        "out.json": "",
        "out.html": "",
    }
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_text(content)
    return {name: str(folder / name) for name in contents}


@pytest.mark.timeout(300)
async def test_every_command_runs(tmp_path: Path) -> None:
    async with serving(speed=50) as one, serving(speed=50) as two:
        settings = configuration(tmp_path, one.url, two.url)
        arms = {"chunk-512": "b0", "chunk-2048": "b1"}
        settings["models"]["m"]["arms"] = {
            arm: {"weight": 1, "backends": [backend]} for arm, backend in arms.items()
        }
        async with running(settings, tmp_path) as gateway:
            env = {
                "GATEWAY_URL": gateway.url,
                "GATEWAY_KEY": KEY,
                "GATEWAY_ADMIN_KEY": ADMIN_KEY,
            }
            there = files(tmp_path / "files")
            for line in commands():
                words = [there.get(word, word) for word in shlex.split(line)[1:]]
                words = [word.replace(ENGINE, one.url) for word in words]
                direct = one.url in words
                brief = () if "--from" in words else BRIEF
                status, said = await command(*words, *brief, env={} if direct else env)
                assert status == 0, f"{line}\n{said}"
                assert "TTFT P50" in said and "An engine is simulated" in said, line


def test_there_are_commands_for_every_workload() -> None:
    found = list(commands())
    named = {name for line in found for name in re.findall("--workload ([a-z-]+)", line)}
    assert named | {"shared-prefix"} == set(WORKLOADS)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_the_table_of_thresholds_is_the_codes(name: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    limit = f"{THRESHOLDS[name].limit:.2f}" if THRESHOLDS[name].limit < 1 else "ms"
    assert limit in row and ("≤" if THRESHOLDS[name].upper else "≥") in row
    on = (name in defaults(shares_prefix=True), name in defaults(shares_prefix=False))
    said = {(True, True): "yes", (True, False): "with a shared prefix", (False, False): "no:"}
    assert said[on] in row


def test_the_shares_that_may_fail_are_the_codes() -> None:
    may = {name: f"{100 * one.failures:.0f} %" for name, one in THRESHOLDS.items()}
    p90, p99, others = may.pop("p90"), may.pop("p99"), set(may.values())
    assert f"{p90} for `p90` and {p99} for `p99`" in PAGE
    assert f"and {', '.join(others)} for the others" in PAGE


def test_its_numbers_are_the_codes() -> None:
    options = Options()
    assert f"{options.requests} requests a round, {options.users} at a time" in PAGE
    assert f"about {options.prefix_tokens:,} tokens" in PAGE
    assert FEWEST_ROUNDS == 3 and "at least three rounds" in PAGE
    assert f"1 in {comb(6, 3) // 2} comparisons for three rounds, 1 in {comb(10, 5) // 2}" in PAGE
    assert f"Above {100 * MOST:.0f} % of the median TTFT" in PAGE
