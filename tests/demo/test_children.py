from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from gateway.demo import children
from gateway.demo.children import Child
from gateway.demo.plan import Plan
from gateway.errors import GatewayError


async def test_a_child_that_ends_says_why(tmp_path: Path) -> None:
    arguments = ["sim", "--port", "0", "--max-num-batched-tokens", "64", "--max-num-seqs", "128"]
    child = Child("engine a", arguments, tmp_path / "log", {})
    said = r"engine a ended with status 2: (?s:.)*max_num_seqs"
    try:
        with pytest.raises(GatewayError, match=said):
            await child.port()
    finally:
        child.stop()


async def test_a_child_is_found_by_its_port_and_gone_when_stopped(tmp_path: Path) -> None:
    child = Child("engine a", ["sim", "--port", "0"], tmp_path / "log", {})
    try:
        assert await child.port() > 0
        child.check()
    finally:
        child.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    with pytest.raises(GatewayError, match="engine a ended"):
        child.check()


async def test_a_child_that_never_listens_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "START_TIMEOUT", 0.05)
    child = Child("engine a", ["sim", "--port", "0"], tmp_path / "log", {})
    try:
        with pytest.raises(GatewayError, match="did not start within"):
            await child.port()
    finally:
        child.stop()


async def test_settings_of_another_gateway_do_not_reach_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_SERVER__PORT", "not a port")
    config = tmp_path / "gateway.yaml"
    ports = {"chunk-512": 1, "chunk-64": 2}
    settings = Plan(1.0).configuration(ports, str(tmp_path / "gateway.db"))
    config.write_text(yaml.safe_dump(settings))
    child = Child("gateway", ["serve", "-c", str(config)], tmp_path / "log", {})
    try:
        assert await child.port() > 0
    finally:
        child.stop()
