"""CPU and memory of a process tree, and its end."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from benchmarks import process

# A parent whose child burns CPU: what a server with a worker looks like.
FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
time.sleep(60)
"""


def test_the_cpu_of_children_counts_and_all_of_them_end(tmp_path: Path) -> None:
    started = process.start([sys.executable, "-c", FAMILY], core=0, log=tmp_path / "log")
    while len(process.tree(started.pid)) < 2:
        time.sleep(0.02)
    family = process.tree(started.pid)
    before, at = process.cpu_by_thread(started.pid), time.perf_counter()
    time.sleep(0.5)
    spent = process.cpu_between(before, process.cpu_by_thread(started.pid))
    elapsed_us = (time.perf_counter() - at) * 1e6
    assert 0.02 * elapsed_us < spent < 1.2 * elapsed_us  # the core may be shared
    assert process.resident_kib(started.pid) > 5_000
    assert os.sched_getaffinity(family[1]) == {0}
    process.stop(started)
    deadline = time.monotonic() + 5
    while process.cpu_by_thread(family[1]) and time.monotonic() < deadline:
        time.sleep(0.02)  # its new parent has yet to reap it
    assert process.cpu_by_thread(family[1]) == {}


def test_a_server_that_dies_says_why(tmp_path: Path) -> None:
    log = tmp_path / "log"
    started = process.start([sys.executable, "-c", "raise SystemExit('no port')"], core=0, log=log)
    with pytest.raises(process.ServerFailed, match="status 1: no port"):
        process.wait_until_ready(started, process.free_port(), "/", log, timeout=10)


def test_a_thread_that_began_in_between_counts_whole() -> None:
    assert process.cpu_between({"1": 5_000, "2": 7_000}, {"1": 9_000, "3": 2_000}) == 6.0
