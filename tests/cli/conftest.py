"""A gateway's admin API on a real socket, and the command line as a shell runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import uvicorn

from gateway.cli.main import main
from tests.admin.fake import ADMIN_KEY, FakeControl, application, settings
from tests.support.served import served_beside


class Result(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `gateway ARGS…`."""

    def run(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["gateway", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Result(int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def control() -> FakeControl:
    return FakeControl(settings())


@pytest.fixture
def url(control: FakeControl, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the gateway listens; the environment holds it and the admin key."""
    config = uvicorn.Config(application(control), log_config=None, ws="none")
    with served_beside(config) as port:
        url = f"http://127.0.0.1:{port}"
        monkeypatch.setenv("GATEWAY_URL", url)
        monkeypatch.setenv("GATEWAY_ADMIN_KEY", ADMIN_KEY)
        yield url
