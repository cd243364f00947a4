from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep, thread_time
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from gateway.records import NoToken, Outcome, Record
from gateway.telemetry.access_log import AccessLog

Streamed = Callable[..., Record]
DROPPED = "gateway_access_log_dropped_total"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


@pytest.fixture
def log(path: Path, registry: CollectorRegistry) -> Iterator[AccessLog]:
    log = AccessLog(path, registry, interval=0.01)
    yield log
    log.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + 5
    while not condition():
        assert monotonic() < deadline, "did not happen within 5 s"
        sleep(0.005)


def test_a_line_tells_all_but_content(log: AccessLog, path: Path, streamed: Streamed) -> None:
    log.write(
        streamed(
            session="9f3c", session_source="x-session-id", backend_api="chat",
            tried=("vllm-b",), bytes_in=812,
            bytes_out=4096, requested_model="gpt-4o-local", detail="vllm-b: refused",
            weights={"chunk-512": 50.0},
        )
    )  # fmt: skip
    log.close()
    assert lines(path) == [
        {
            "ts": "2023-11-14T22:13:20.250000Z",
            "id": "req-1",
            "key": "dev",
            "model": "llama",
            "requested_model": "gpt-4o-local",
            "api": "chat",
            "path": "/v1/chat/completions",
            "stream": True,
            "session": "9f3c",
            "session_source": "x-session-id",
            "assigned_arm": "chunk-512",
            "arm": "chunk-512",
            "backend": "vllm-a",
            "backend_api": "chat",
            "tried": ["vllm-b"],
            "forced": False,
            "status": 200,
            "outcome": "ok",
            "no_token": None,
            "body_complete_ms": 10.0,
            "admitted_ms": 30.0,
            "sent_ms": 35.0,
            "upstream_headers_ms": 70.0,
            "first_byte_ms": 75.0,
            "first_token_ms": 335.0,
            "last_token_ms": 385.0,
            "done_ms": 400.0,
            "prompt_tokens": 1600,
            "cached_tokens": 1024,
            "completion_tokens": 40,
            "usage_exact": True,
            "bytes_in": 812,
            "bytes_out": 4096,
            "error": "",
            "detail": "vllm-b: refused",
        }
    ]


def test_what_never_came_is_null(log: AccessLog, path: Path, streamed: Streamed) -> None:
    log.write(
        streamed(
            outcome=Outcome.TIMEOUT,
            no_token=NoToken.TIMEOUT,
            usage=None,
            marks={"first_byte": None, "first_token": None, "last_token": None},
        )
    )
    log.close()
    (line,) = lines(path)
    assert line["first_token_ms"] is None and line["prompt_tokens"] is None
    assert line["no_token"] == "timeout"


def test_a_newline_in_a_name_stays_in_its_line(
    log: AccessLog, path: Path, streamed: Streamed
) -> None:
    log.write(streamed(requested_model='x\n{"id": "forged"}'))
    log.close()
    (line,) = lines(path)
    assert line["requested_model"] == 'x\n{"id": "forged"}'


def test_lines_come_without_closing_and_in_order(
    log: AccessLog, path: Path, streamed: Streamed
) -> None:
    for number in range(100):
        log.write(streamed(id=str(number)))
    wait_for(lambda: len(path.read_bytes().splitlines()) == 100)
    assert [line["id"] for line in lines(path)] == [str(number) for number in range(100)]


def test_a_rotated_file_is_followed(log: AccessLog, path: Path, streamed: Streamed) -> None:
    log.write(streamed(id="before"))
    wait_for(lambda: bool(path.read_bytes()))
    rotated = path.rename(path.with_suffix(".1"))
    log.write(streamed(id="after"))
    log.close()
    assert [line["id"] for line in lines(rotated)] == ["before"]
    assert [line["id"] for line in lines(path)] == ["after"]


def test_it_appends(path: Path, streamed: Streamed) -> None:
    for name in ("first", "second"):
        log = AccessLog(path, CollectorRegistry())
        log.write(streamed(id=name))
        log.close()
    assert [line["id"] for line in lines(path)] == ["first", "second"]


def test_a_reader_that_hangs_costs_lines_not_memory(
    tmp_path: Path, registry: CollectorRegistry, streamed: Streamed
) -> None:
    """A full pipe blocks the log's thread only; what does not fit is counted and told."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    log = AccessLog(fifo, registry, limit=500, interval=0.01)
    began = thread_time()
    for number in range(3000):
        log.write(streamed(id=str(number)))
    assert thread_time() - began < 1
    os.set_blocking(reader, True)
    received = bytearray()

    def read() -> None:
        while data := os.read(reader, 65536):
            received.extend(data)

    thread = threading.Thread(target=read)
    thread.start()
    log.close()
    thread.join()
    os.close(reader)
    written = [msgspec.json.decode(line) for line in bytes(received).splitlines()]
    told = sum(line.get("dropped", 0) for line in written)
    assert told > 0
    assert sum("id" in line for line in written) + told == 3000
    assert registry.get_sample_value(DROPPED) == told


def test_a_full_disk_does_not_end_the_log(registry: CollectorRegistry, streamed: Streamed) -> None:
    log = AccessLog(Path("/dev/full"), registry, interval=0.01)
    log.write(streamed())
    wait_for(lambda: registry.get_sample_value(DROPPED) == 1)
    log.write(streamed())
    wait_for(lambda: registry.get_sample_value(DROPPED) == 2)
    log.close()


def test_a_path_that_cannot_be_opened_is_told_at_once(
    tmp_path: Path, registry: CollectorRegistry
) -> None:
    with pytest.raises(OSError, match="No such file or directory"):
        AccessLog(tmp_path / "missing" / "access.log", registry)


def test_standard_output(
    registry: CollectorRegistry, streamed: Streamed, capfd: pytest.CaptureFixture[str]
) -> None:
    log = AccessLog(None, registry)
    log.write(streamed())
    log.close()
    assert msgspec.json.decode(capfd.readouterr().out)["id"] == "req-1"
