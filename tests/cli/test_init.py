"""`gateway init`: a file that loads, that only its owner reads, and that serves two engines."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gateway.cli.init import configuration, new_key
from gateway.demo.children import Child
from gateway.settings import load
from gateway.settings.strength import weakness
from tests.cli.conftest import Run
from tests.support.running import running


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def flat(text: str) -> str:
    """What stands in the box around an error, on one line."""
    return " ".join(re.sub("[─│╭╮╰╯]", " ", text).split())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_writes_gateway_yaml_that_loads_and_says_what_is_next(run: Run, here: Path) -> None:
    result = run("init")

    settings = load(here / "gateway.yaml", {})
    model = settings.models["llama-3-70b"]
    assert result.status == 0
    assert {name: arm.weight for name, arm in model.arms.items()} == {
        "chunk-512": 50,
        "chunk-2048": 50,
    }
    assert [backend.url for backend in settings.backends.values()] == [
        "http://127.0.0.1:8001",
        "http://127.0.0.1:8002",
    ]
    assert result.out.startswith("Wrote gateway.yaml, with a fresh key under keys")
    assert "gateway check gateway.yaml\n" in result.out
    assert "gateway serve -c gateway.yaml\n" in result.out


def test_the_file_is_its_owners_alone_whatever_the_umask(run: Run, here: Path) -> None:
    before = os.umask(0)
    try:
        run("init", "a.yaml")
        (here / "b.yaml").touch(0o644)
        run("init", "b.yaml", "--force")
    finally:
        os.umask(before)

    assert mode(here / "a.yaml") == 0o600
    assert mode(here / "b.yaml") == 0o600
    assert sorted(path.name for path in here.iterdir()) == ["a.yaml", "b.yaml"]


def test_keys_are_fresh_strong_and_not_shown(run: Run, here: Path) -> None:
    keys = []
    for name in ("a.yaml", "b.yaml"):
        out = run("init", name).out
        settings = load(here / name, {})
        key, admin = settings.keys[0].key, settings.admin.key
        assert key is not None
        assert admin is not None
        keys += [key.get_secret_value(), admin.get_secret_value()]
        assert not any(key in out for key in keys)

    assert len(set(keys)) == 4
    assert [weakness(key) for key in keys] == [None] * 4


def test_a_thousand_keys_pass_the_strength_check() -> None:
    assert [weakness(new_key()) for _ in range(1000)] == [None] * 1000


def test_an_existing_file_stays_unless_forced(run: Run, here: Path) -> None:
    (here / "gateway.yaml").write_text("precious")

    refused = run("init")
    assert refused.status == 2
    assert "gateway.yaml exists already; --force replaces it, keys and all" in flat(refused.err)
    assert (here / "gateway.yaml").read_text() == "precious"

    assert run("init", "--force").status == 0
    assert "llama-3-70b" in load(here / "gateway.yaml", {}).models


def test_a_link_that_leads_nowhere_is_not_followed(run: Run, here: Path) -> None:
    (here / "gateway.yaml").symlink_to(here / "elsewhere")

    assert run("init").status == 2
    assert not (here / "elsewhere").exists()


def test_places_where_no_file_can_be(run: Run, here: Path) -> None:
    missing = run("init", "no/such/place.yaml")
    assert (missing.status, missing.err) == (1, "no/such/place.yaml: No such file or directory\n")

    folder = run("init", str(here), "--force")
    assert folder.status == 2
    assert "is a directory" in flat(folder.err)


def test_every_setting_and_every_line_of_a_list_has_a_word_about_it() -> None:
    """A newcomer reads the file from the top; only repeated lines go without a comment."""
    text = configuration("KEY", "ADMIN")
    first_backend = text.split("  vllm-b:")[0]
    structure = re.compile(r"\s*(server|models|arms|experiment|vllm-a|metrics|admin):\s*$")
    for line in first_backend.splitlines():
        if ":" in line and "#" not in line and not structure.match(line):
            assert line.split(":")[0].strip() in {"upstream_model", "engine"}, line


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[dict[int, Child]]:
    """Two simulated servers, started as the file says for ports 8001 and 8002."""
    commands = re.findall(
        r"# vllm serve MODEL --served-model-name (\S+) --port (\d+) \\\n +# +(.+)",
        configuration("KEY", "ADMIN"),
    )
    children = {
        int(port): Child(
            f"engine {port}",
            ["sim", "--model", model, "--port", "0", "--speed", "20", *rest.split()],
            tmp_path / f"{port}.log",
            {},
        )
        for model, port, rest in commands
    }
    yield children
    for child in children.values():
        child.stop()


async def test_serves_two_engines_started_as_it_says(
    run: Run, tmp_path: Path, engines: dict[int, Child]
) -> None:
    path = tmp_path / "gateway.yaml"
    run("init", str(path))
    text = path.read_text()
    assert sorted(engines) == [8001, 8002]
    for port, engine in engines.items():
        text = text.replace(
            f"url: http://127.0.0.1:{port}", f"url: http://127.0.0.1:{await engine.port()}"
        )
    data = yaml.safe_load(text.replace("port: 8080", "port: 0"))
    data["database_url"] = f"sqlite:///{tmp_path}/gateway.db"

    async with running(data, tmp_path) as gateway:
        for arm in ("chunk-512", "chunk-2048"):
            reply = await gateway.client.post(
                f"{gateway.url}/v1/chat/completions",
                headers={"authorization": f"Bearer {data['keys'][0]['key']}"},
                json={
                    "model": f"llama-3-70b@{arm}",
                    "messages": [{"role": "user", "content": "hi"}],
                    "max_tokens": 3,
                },
            )
            assert reply.status_code == 200, reply.text
            assert reply.headers["x-gateway-arm"] == arm
            assert reply.json()["usage"]["completion_tokens"] == 3
