from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.usual_file import DEFAULT_URL, locate
from tests.admin.fake import ADMIN_KEY, READ_KEY, FakeControl, settings
from tests.settings.samples import OTHER_KEY, changed

Run = Callable[..., Any]


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], str]]:
    """Listens once and answers with these very bytes."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(answer: bytes) -> str:
        def once() -> None:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.sendall(answer)
            connection.close()

        threads.append(threading.Thread(target=once))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield serve
    for thread in threads:
        thread.join()
    listener.close()


def test_nobody_listens(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    result = run("models", "--url", f"http://127.0.0.1:{port}", "--key", "k")
    assert result.status == 1
    assert f"No gateway answers at http://127.0.0.1:{port}" in result.err
    assert "GATEWAY_URL" in result.err and "Traceback" not in result.err


@pytest.mark.parametrize(
    ("words", "variable", "source"),
    [
        (("--key", "sk-wrong"), ADMIN_KEY, "--key"),
        ((), "sk-wrong", "GATEWAY_ADMIN_KEY"),
    ],
)
def test_a_wrong_key(
    run: Run,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    variable: str,
    source: str,
) -> None:
    monkeypatch.setenv("GATEWAY_ADMIN_KEY", variable)
    result = run("models", *words)
    assert result.status == 1
    assert f"does not know this admin key, which {source} gave." in result.err
    assert "sk-wrong" not in result.err


def test_no_key(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GATEWAY_ADMIN_KEY")
    result = run("models")
    assert result.status == 2
    assert "GATEWAY_ADMIN_KEY" in result.err


def beside(folder: Path, url: str, **changes: Any) -> None:
    """Write a gateway.yaml of the gateway that listens at `url`."""
    server = {"host": "127.0.0.1", "port": int(url.rpartition(":")[2])}
    admin = {"key": OTHER_KEY}
    content = changed(("server", server), ("admin", admin), *changes.items())
    (folder / "gateway.yaml").write_text(json.dumps(content))


@pytest.fixture
def no_key(url: str, control: FakeControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control.settings = settings(admin={"key": OTHER_KEY})
    monkeypatch.delenv("GATEWAY_ADMIN_KEY")
    monkeypatch.chdir(tmp_path)


def test_the_key_of_the_file_that_stands_there(
    run: Run, url: str, tmp_path: Path, no_key: None
) -> None:
    beside(tmp_path, url)
    assert run("models").status == 0


def test_a_wrong_key_of_the_file_is_named_so(
    run: Run, url: str, tmp_path: Path, no_key: None, control: FakeControl
) -> None:
    beside(tmp_path, url)
    control.settings = settings()
    result = run("models")
    assert result.status == 1 and "which admin.key of gateway.yaml gave" in result.err


def test_the_files_key_is_for_the_gateway_it_configures(
    run: Run, url: str, tmp_path: Path, no_key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    beside(tmp_path, "http://127.0.0.1:1")
    result = run("models")
    assert result.status == 2 and "GATEWAY_ADMIN_KEY" in result.err
    assert "gateway.yaml here is of the gateway at http://127.0.0.1:1" in result.err


def test_the_address_of_the_file_that_stands_there(
    run: Run, url: str, tmp_path: Path, no_key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(tmp_path, url)
    monkeypatch.delenv("GATEWAY_URL")
    assert run("models").status == 0
    monkeypatch.setenv("GATEWAY_URL", "http://127.0.0.1:1")
    assert "GATEWAY_ADMIN_KEY" in run("models").err, "the environment comes first"


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("0.0.0.0", "http://127.0.0.1:8099"),
        ("gateway.example.com", DEFAULT_URL),
        ("192.0.2.1", DEFAULT_URL),
    ],
)
def test_a_file_names_a_gateway_of_this_machine_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, asked: str
) -> None:
    """It may have come with somebody's checkout, and would say who gets the environment's key."""
    content = changed(("server", {"host": host, "port": 8099}))
    (tmp_path / "gateway.yaml").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    assert locate(None).address.root == asked


def test_a_file_with_faults_has_no_key(
    run: Run, url: str, tmp_path: Path, no_key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    beside(tmp_path, url, models={})
    result = run("models")
    assert result.status == 2 and "GATEWAY_ADMIN_KEY" in result.err
    assert "gateway.yaml here has faults, which `gateway check` lists" in result.err


def test_a_file_without_an_admin_key(run: Run, url: str, tmp_path: Path, no_key: None) -> None:
    beside(tmp_path, url, admin={})
    result = run("models")
    assert result.status == 2 and "GATEWAY_ADMIN_KEY" in result.err


def test_a_key_no_header_can_hold(run: Run, url: str) -> None:
    for key in ("schlüssel", "a\nb"):
        result = run("models", "--key", key)
        assert result.status == 2 and "Invalid value for --key:" in result.err


def test_such_a_key_of_the_environment(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_ADMIN_KEY", "schlüssel")
    result = run("models")
    assert result.status == 2 and "Invalid value for GATEWAY_ADMIN_KEY:" in result.err


def test_a_reading_key_cannot_change_anything(run: Run, url: str) -> None:
    assert run("backends", "--key", READ_KEY).status == 0
    result = run("backends", "out", "vllm-a", "--key", READ_KEY)
    assert result.status == 1
    assert "read_key may only read" in result.err


def test_an_admin_api_that_is_off(run: Run, url: str, control: FakeControl) -> None:
    control.settings = settings(admin={})
    result = run("models")
    assert result.status == 1
    assert "Set admin.key" in result.err


@pytest.mark.parametrize("address", ["gateway.internal:8080", "ftp://x", "", "http://"])
def test_an_address_that_is_none(run: Run, address: str) -> None:
    result = run("models", "--url", address, "--key", "k")
    assert result.status == 2
    assert "HOST:PORT" in result.err


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nNot Found",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n<html>hi!",
        b'HTTP/1.1 500 Oops\r\ncontent-length: 15\r\n\r\n{"detail":"no"}',
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 44\r\n\r\n"
        b'{"error":{"message":"Not Found","code":404}}',  # as vLLM says it
    ],
)
def test_something_else_answers(run: Run, answering: Callable[[bytes], str], answer: bytes) -> None:
    result = run("models", "--url", answering(answer), "--key", "k")
    assert result.status == 1
    assert "is no TTFT Gateway" in result.err


def test_not_http_at_all(run: Run, answering: Callable[[bytes], str]) -> None:
    result = run("models", "--url", answering(b"SSH-2.0-OpenSSH_9.6\r\n"), "--key", "k")
    assert result.status == 1
    assert "does not speak HTTP as expected" in result.err


def test_a_proxy_of_the_environment_does_not_get_the_key(
    run: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert run("models").status == 0


@pytest.mark.parametrize("command", ["models", "backends", "canary", "why", "reload"])
def test_help_gives_an_example(run: Run, command: str) -> None:
    result = run(command, *(("set",) if command == "canary" else ()), "--help")
    assert result.status == 0
    assert f"Example: gateway {command}" in result.out
    assert "GATEWAY_ADMIN_KEY" in result.out
