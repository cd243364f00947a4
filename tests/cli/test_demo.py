"""The demo as a user runs it: real processes, real sockets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DEMO = [sys.executable, "-m", "gateway", "demo"]


def children_of(pid: int) -> dict[int, str]:
    """Process ids of the children, with their command lines."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = (line.split(maxsplit=2) for line in listed.stdout.splitlines())
    return {int(row[0]): row[2] for row in rows if row[1] == str(pid) and len(row) == 3}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.timeout(120)
def test_the_small_chunk_is_slower_and_the_cache_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    arguments = ["--requests", "160", "--speed", "10", "--json", str(file)]
    done = subprocess.run([*DEMO, *arguments], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert found["verdict"] is None
    large, small = found["arms"]["chunk-512"], found["arms"]["chunk-64"]
    assert large["requests"] + small["requests"] == 160
    # Some 54 conversations, drawn 50/50: fewer than a quarter comes up once in 10,000 runs.
    assert min(large["requests"], small["requests"]) >= 40
    assert large["errors"] == small["errors"] == 0
    # A passage of 800 tokens takes chunk 64 at least 13 steps of 13 ms and chunk 512 two of 40;
    # what this machine adds is multiplied by 10, and the same for both.
    assert 60 < large["ttft_ms"]["p50"] < small["ttft_ms"]["p50"]
    assert small["ttft_ms"]["p50"] > 160
    assert small["ttft_ms"]["p50"] / large["ttft_ms"]["p50"] > 1.3
    assert small["ttft_ms"]["p90"] > large["ttft_ms"]["p90"]
    for arm in (large, small):
        assert arm["ttft_ms"]["p50"] <= arm["ttft_ms"]["p90"] <= arm["ttft_ms"]["p99"]
    assert large["cached_share"] == pytest.approx(small["cached_share"], abs=0.05)
    assert 0.6 < large["cached_share"] < 0.85
    for words in ("Base URL", "llama-3-70b", "chunk-64", "simulated", "Verdict: none yet"):
        assert words in done.stdout


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything(tmp_path: Path, name: signal.Signals) -> None:
    file = tmp_path / "out.json"
    process = subprocess.Popen(
        [*DEMO, "--json", str(file)],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        children = await_children(process, 4)
        await_requests(tmp_path)
        assert process.stdout is not None
        said = [process.stdout.readline(), process.stdout.readline()]
        process.send_signal(name)
        output, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert b"Base URL" in said[1], "who starts it in the background learns where it is in the end"
    assert process.returncode == 0, output
    assert not [pid for pid in children if alive(pid)]
    assert sum(arm["requests"] for arm in json.loads(file.read_text())["arms"].values()) > 0


@pytest.mark.timeout(120)
def test_a_signal_while_it_starts_leaves_no_child(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    process = subprocess.Popen([*DEMO, "--json", str(file)], stdout=subprocess.PIPE)
    try:
        children = await_children(process, 1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0
    assert not [pid for pid in children if alive(pid)]
    # There are no figures, so there is no file that could be taken for some.
    assert not file.exists()


@pytest.mark.timeout(120)
def test_a_gateway_that_dies_ends_the_demo_with_a_sentence(tmp_path: Path) -> None:
    process = subprocess.Popen(
        DEMO,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        children = await_children(process, 4)
        await_requests(tmp_path)
        (gateway,) = (pid for pid, words in children.items() if " serve " in words)
        os.kill(gateway, signal.SIGKILL)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 1
    assert errors.startswith("gateway ended with status -9")
    assert "Traceback" not in errors
    assert not [pid for pid in children if alive(pid)]


@pytest.mark.timeout(120)
def test_a_reader_that_leaves_ends_it_quietly(tmp_path: Path) -> None:
    said = tmp_path / "errors.txt"
    arguments = ["--requests", "5", "--speed", "100"]
    with said.open("wb") as errors:
        process = subprocess.Popen([*DEMO, *arguments], stdout=subprocess.PIPE, stderr=errors)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        children = await_children(process, 2)
        assert process.wait(20) == 1
    finally:
        process.kill()
    assert said.read_bytes() == b""
    assert not [pid for pid in children if alive(pid)]


def test_a_file_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    arguments = ["--json", str(tmp_path / "nowhere" / "out.json")]
    done = subprocess.run([*DEMO, *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "nowhere/out.json: No such file or directory" in done.stderr


def await_children(
    process: subprocess.Popen[bytes] | subprocess.Popen[str], number: int
) -> dict[int, str]:
    """The first `number` children, once they are there."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        children = children_of(process.pid)
        if len(children) >= number:
            return children
        assert process.poll() is None, "it ended early"
        time.sleep(0.05)
    raise AssertionError("it did not start")


def await_requests(folder: Path) -> None:
    """Wait until the gateway of the demo that runs in `folder` has logged some requests."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        if any(log.stat().st_size for log in folder.glob("gateway-demo-*/access.jsonl")):
            return
        time.sleep(0.05)
    raise AssertionError("no request was logged")
