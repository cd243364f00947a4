"""`gateway sim --fit`, and `gateway plan` with what it wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.planning.traffic import Traffic
from tests.planning.made import KNOWN, family, log_line, requests, timed, write, write_log

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results at two chunk sizes, and a log of an engine at the larger one."""
    path = tmp_path_factory.mktemp("plan")
    for traffic in family(64, 512):
        write(path / f"{traffic.chunk}.json", traffic)
    write(path / "open.json", *family(512, users=None, rate=4.0))
    its = timed(Traffic(name="b0", chunk=512, requests=requests(60, seed=7, rate=2.0)))
    write_log(path / "access.jsonl", [log_line(one) for one in its.requests])
    return path


@pytest.fixture
def calibration(run: Run, folder: Path) -> Path:
    """Fitted once, by the first test that needs it."""
    file = folder / "calibration.json"
    if not file.exists():
        # Only an engine that rests now and then tells what a request takes outside of its steps.
        fit(run, folder, 64, 512, "--fit", f"512={folder}/open.json", "--json", str(file))
    return file


def fit(run: Run, folder: Path, *arguments: object) -> Any:
    chunks = [f"{one}={folder}/{one}.json" for one in arguments if isinstance(one, int)]
    more = [one for one in arguments if isinstance(one, str)]
    sources = [part for one in chunks for part in ("--fit", one)]
    return run("sim", *sources, "--block-size", "16", "--max-num-seqs", "32", *more)


def test_a_fit_tells_its_parameters_and_its_errors(run: Run, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    done = fit(run, folder, 64, 512, "--json", str(file))
    assert done.status == 0
    assert "A step takes 12 ms, 50 µs a token and 60 ns for each token it attends to" in done.out
    assert "Fitted to 108 requests at chunk sizes of 64, 512." in done.out
    assert "Each chunk size, predicted from the others" in done.out
    rows = [line.split() for line in done.out.splitlines() if "P90" in line]
    assert [row[0] for row in rows] == ["64", "64", "512", "512"]
    assert "off by" in done.out and "gateway sim --calibration" in done.out
    machine = json.loads(file.read_text())["machine"]
    assert machine["latency"]["base"] == pytest.approx(KNOWN.latency.base, rel=0.02)
    assert (machine["block_size"], machine["max_num_seqs"]) == (16, 32)


def test_what_the_files_tell_of_the_engine_need_not_be_said(run: Run, tmp_path: Path) -> None:
    (traffic,) = family(64)
    engine = {"max_num_batched_tokens": 64, "block_size": 32, "max_num_seqs": 7}
    source, file = write(tmp_path / "r.json", traffic, **engine), tmp_path / "c.json"
    assert run("sim", "--fit", str(source), "--json", str(file)).status == 0
    machine = json.loads(file.read_text())["machine"]
    assert (machine["block_size"], machine["max_num_seqs"]) == (32, 7)


def test_one_chunk_size_says_nothing_of_others(run: Run, folder: Path) -> None:
    done = fit(run, folder, 512)
    assert "is not known: measure two or more" in done.out


def test_a_plan_shows_what_was_and_what_would_be(run: Run, folder: Path, calibration: Path) -> None:
    arguments = ("--calibration", str(calibration), "--chunk", "512", "--chunk", "64")
    done = run("plan", str(folder / "access.jsonl"), *arguments)
    assert done.status == 0
    assert "60 requests to 1 engine, replayed on a simulated engine" in done.out
    rows = [line for line in done.out.splitlines() if line.startswith(("meas", "64", "512"))]
    measured, small, same = ([float(n) for n in numbers(row)] for row in rows)
    assert "simulated" in rows[1] and "± " in rows[1]
    assert same == pytest.approx(measured, rel=0.05)
    assert small[0] > 1.3 * measured[0], "long prompts take more steps"
    assert "Simulated TTFT by chunk size, in ms: o P50, x P90" in done.out
    assert "Lowest TTFT P50: chunk size 512." in done.out.splitlines()


def test_without_a_picture_it_says_how_to_get_one(
    run: Run, monkeypatch: pytest.MonkeyPatch, folder: Path, calibration: Path
) -> None:
    monkeypatch.setitem(sys.modules, "plotext", None)
    arguments = ("--calibration", str(calibration), "--chunk", "512", "--chunk", "64")
    result = run("plan", str(folder / "access.jsonl"), *arguments)
    assert "The picture was left out: pip install '.[bench]' in the checkout." in result.out


def test_a_log_without_a_time_is_told_so(run: Run, folder: Path, calibration: Path) -> None:
    lines = (folder / "access.jsonl").read_text().splitlines()
    log = write_log(folder / "w.jsonl", [json.loads(one) | {"stream": False} for one in lines])
    done = run("plan", str(log), "--calibration", str(calibration))
    assert (done.status, "of 60 requests none was streamed" in done.err) == (1, True)


def numbers(row: str) -> list[str]:
    return [word for word in row.split() if "." in word]


def test_a_plan_as_json(run: Run, folder: Path, calibration: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    log = str(folder / "access.jsonl")
    run("plan", log, "--calibration", str(calibration), "--chunk", "64", "--json", str(file))
    content = json.loads(file.read_text())
    assert content["simulated"] is True and content["requests"] == 60
    measured, foretold = content["answers"]
    assert (measured["chunk"], foretold["chunk"]) == (None, 64)
    assert foretold["figures"][0].keys() == {"name", "percent", "value", "margin"}


def test_a_plan_says_what_to_doubt(run: Run, folder: Path, calibration: Path) -> None:
    log = folder / "more.jsonl"
    lines = (folder / "access.jsonl").read_text().splitlines()
    lines.append(json.dumps(json.loads(lines[-1]) | {"prompt_tokens": None}))
    log.write_text("".join(f"{line}\n" for line in lines))
    done = run("plan", str(log), "--calibration", str(calibration), "--chunk", "8")
    assert "Outside of the chunk sizes that were measured: 8 (64 to 512)." in done.out
    assert "At 8 the simulated engine does not keep up with b0" in done.out
    assert "nobody told their tokens or none was generated: 1 of 61 requests." in done.out
    assert "cached tokens" not in done.out


def test_a_plan_says_that_nobody_told_what_was_cached(
    run: Run, folder: Path, calibration: Path
) -> None:
    """To vLLM that is an option: without it, all prompts look as if they had been computed."""
    lines = (folder / "access.jsonl").read_text().splitlines()
    untold = [json.loads(one) | {"cached_tokens": 0} for one in lines]
    log = write_log(folder / "untold.jsonl", untold)
    done = run("plan", str(log), "--calibration", str(calibration), "--chunk", "512")
    assert "No request tells of cached tokens" in done.out
    assert "--enable-prompt-tokens-details" in done.out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["sim", "--fit", "nowhere.json"], 1, "nowhere.json: No such file or directory"),
        (["sim", "--fit", "0=a.json"], 2, "0 is no chunk size"),
        (["sim", "--fit", ""], 2, "'' names no file"),
        (["sim", "--fit", "64="], 2, "'64=' names no file"),
        (["sim", "--fit", "64=64=x.json"], 1, "64=x.json: No such file"),
        (["sim", "--fit", "a.json", "--block-size", "0"], 2, "must be from 1 to 1048576"),
        (["sim", "--fit", "a.json", "--max-num-seqs", "-1"], 2, "must be from 1 to 1048576"),
        (["sim", "--fit", "a.json", "--calibration", "c.json"], 2, "cannot go with --fit"),
        (["sim", "--fit", "64=/dev"], 1, "/dev: Is a directory"),
        (["plan", "/dev/zero", "--calibration", "{folder}/calibration.json"], 1, "longer than any"),
        (["sim", "--fit", "64=/dev/zero"], 1, "/dev/zero: it is no regular file"),
        (["sim", "--calibration", "/dev/zero"], 1, "/dev/zero: it is no regular file"),
        (["sim", "--json", "c.json"], 2, "is for --fit"),
        (["sim", "--calibration", "{folder}/64.json"], 1, "64.json is no calibration"),
        (["plan", "{folder}/access.jsonl"], 2, "--calibration"),
        (
            ["plan", "{folder}/access.jsonl", "--calibration", "{folder}/access.jsonl"],
            1,
            "access.jsonl is no calibration",
        ),
        (["sim", "--fit", "{folder}/64.json"], 1, "does not say the max_num_batched_tokens"),
    ],
)
def test_wrong_files(
    run: Run, folder: Path, calibration: Path, arguments: list[str], status: int, message: str
) -> None:
    assert calibration.parent == folder
    done = run(*(one.format(folder=folder) for one in arguments))
    assert (done.status, message in " ".join(done.err.split())) == (status, True), done.err


def test_a_simulated_engine_takes_its_step_times_from_it(calibration: Path) -> None:
    command = [sys.executable, "-m", "gateway", "sim", "--port", "0", "--calibration"]
    process = subprocess.Popen([*command, str(calibration)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "model simulated, calibration.json, max_num_batched_tokens 2048" in line
        assert "max_num_seqs 32, block_size 16" in line, "as plan takes it from there"
    finally:
        process.terminate()
        process.communicate(timeout=30)
