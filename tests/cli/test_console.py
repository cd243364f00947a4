from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli import console
from gateway.demo.children import Child
from tests.cli.conftest import Run


def test_without_its_packages_it_says_how_to_get_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "find_spec", lambda name: None)
    for arguments in (("console",), ("demo", "--console")):
        found = run(*arguments)
        assert found.status == 1
        assert "pip install '.[console]' in the checkout" in found.err


def test_neither_it_nor_the_demo_imports_its_packages_to_say_what_they_do() -> None:
    code = "import sys, gateway.cli.console, gateway.cli.demo; print('nicegui' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("url", ["gateway:8080", "ftp://gateway", "http://"])
def test_an_address_that_is_none_is_refused(run: Run, url: str) -> None:
    found = run("console", "--url", url)
    assert found.status == 2
    assert "is no http(s)://HOST:PORT" in found.err


async def test_a_port_in_use_is_named(tmp_path: Path, run: Run) -> None:
    child = Child("console", ["console", "--port", "0"], tmp_path / "log", {})
    try:
        port = await child.port()
        found = run("console", "--port", str(port))
    finally:
        child.stop()
    assert found.status == 1
    assert f"cannot listen on 127.0.0.1:{port}" in found.err
