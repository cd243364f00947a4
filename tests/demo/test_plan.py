from __future__ import annotations

import socket
from pathlib import Path

import yaml

from gateway.demo.plan import MODEL, Plan, preferred_port
from gateway.settings import load


def test_the_configuration_is_one_the_gateway_takes(tmp_path: Path) -> None:
    made = Plan(1.0)
    found = made.configuration({"chunk-512": 1, "chunk-64": 2}, str(tmp_path / "gateway.db"))
    file = tmp_path / "gateway.yaml"
    file.write_text(yaml.safe_dump(found))
    settings = load(file, {})
    arms = settings.models[MODEL].arms
    assert {name: arm.weight for name, arm in arms.items()} == {"chunk-512": 50, "chunk-64": 50}
    assert settings.models[MODEL].control == "chunk-512"
    assert settings.backends["chunk-64"].url == "http://127.0.0.1:2"


def test_the_engines_differ_in_their_chunk_only() -> None:
    made = Plan(3.0)
    pairs = zip(made.engine_arguments("chunk-512"), made.engine_arguments("chunk-64"), strict=True)
    assert [pair for pair in pairs if pair[0] != pair[1]] == [("512", "64")]


def test_each_run_has_keys_of_its_own_and_an_engine_never_gets_the_clients() -> None:
    one, other = Plan(1.0), Plan(1.0)
    keys = {one.key, one.admin_key, one.engine_key, other.key, other.admin_key, other.engine_key}
    assert len(keys) == 6
    assert not keys & set(one.engine_arguments("chunk-64"))


def test_a_port_in_use_is_left_to_who_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert preferred_port(port) == 0
    assert preferred_port(port) == port


def test_no_key_is_on_the_consoles_command_line() -> None:
    made = Plan(1.0)
    arguments = made.console_arguments("http://127.0.0.1:8080")
    assert arguments[:3] == ["console", "--url", "http://127.0.0.1:8080"]
    assert not {made.key, made.admin_key, made.engine_key} & set(arguments)
