"""Engine configurations that extend others, and their faults."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.cli.engine_file import load_engine
from gateway.errors import ConfigError


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder / f"{next(iter(files))}.yaml"


def faults(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_engine(path)
    return caught.value.faults


def test_what_is_said_again_replaces_what_the_base_says(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        top="extends: middle.yaml\nmax_num_seqs: null\nflags: {seed: 2}\nenv: {B: b}",
        middle="extends: base.yaml\nmax_num_batched_tokens: 256",
        base=(
            "model: m\nmax_num_batched_tokens: 512\nmax_num_seqs: 64\n"
            "flags: {seed: 1, enforce-eager: true}\nenv: {A: a}"
        ),
    )
    found = load_engine(path)

    assert (found.model, found.max_num_batched_tokens, found.max_num_seqs) == ("m", 256, None)
    assert found.flags == {"seed": 2, "enforce-eager": True}
    assert found.env == {"A": "a", "B": "b"}


def test_null_takes_a_single_flag_or_variable_back(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        top="extends: base.yaml\nflags: {seed: null}\nenv: {A: null}",
        base="model: m\nflags: {seed: 1, enforce-eager: true}\nenv: {A: a, B: b}",
    )
    found = load_engine(path)

    assert (found.flags, found.env) == ({"enforce-eager": True}, {"B": "b"})


def test_a_base_is_looked_for_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path, base="model: m")

    assert load_engine(write(tmp_path / "sub", top="extends: ../base.yaml")).model == "m"


def test_files_that_extend_each_other(tmp_path: Path) -> None:
    assert faults(write(tmp_path, a="extends: b.yaml", b="extends: ./a.yaml")) == [
        "extends: ./a.yaml extends this file in turn"
    ]


def test_a_loop_by_another_name(tmp_path: Path) -> None:
    (tmp_path / "link.yaml").symlink_to("a.yaml")
    path = write(tmp_path, a="extends: b.yaml", b="extends: link.yaml")
    assert faults(path) == ["extends: link.yaml extends this file in turn"]
    assert faults(write(tmp_path, a="extends: a.yaml")) == [
        "extends: a.yaml extends this file in turn"
    ]


def test_a_long_chain_of_files(tmp_path: Path) -> None:
    names = [f"f{n}" for n in range(1500)]
    files = {name: f"extends: f{n + 1}.yaml" for n, name in enumerate(names)}
    assert load_engine(write(tmp_path, **files, f1500="model: m")).model == "m"


def test_what_is_taken_back_below_does_not_come_back(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        top="extends: middle.yaml\nflags: {seed: 2}",
        middle="extends: base.yaml\nflags: null",
        base="model: m\nflags: {enforce-eager: true}",
    )
    assert load_engine(path).flags == {"seed": 2}


@pytest.mark.parametrize("base", ["[b]", "''", '"a\\0b"', '"a\\nb"', "5"])
def test_a_base_that_is_no_name(tmp_path: Path, base: str) -> None:
    assert faults(write(tmp_path, a=f"extends: {base}\nmodel: m")) == [
        "extends: must be the name of another file"
    ]


def test_a_base_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 10**9)
    for base, path, why in (
        ("none.yaml", f"{tmp_path}/none.yaml", "No such file or directory"),
        ("/dev/zero", "/dev/zero", "it is no regular file"),
        ("pipe", f"{tmp_path}/pipe", "it is no regular file"),
        (".", str(tmp_path), "Is a directory"),
        ("huge", f"{tmp_path}/huge", "it has more than 4194304 bytes"),
        ("x" * 300, f"{tmp_path}/{'x' * 300}", "File name too long"),
    ):
        found = faults(write(tmp_path, a=f"extends: {base}"))
        assert found == [f"{path}: cannot be read: {why}"]


def test_all_faults_of_one_file_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, a="max_num_batched_token: 1\nport: 0\nmodel: m\nport: 1\n")

    found = faults(path)

    assert found[0].startswith(
        "max_num_batched_token: unknown key, did you mean max_num_batched_tokens? Allowed here: "
        "model, engine_version, name"
    )
    assert found[1:] == ["port: is given twice, in lines 2 and 4: keep one"]


def test_a_gateway_s_configuration_is_told_from_an_engine_s(tmp_path: Path) -> None:
    path = write(tmp_path, a="server: {}\nmodels: {}\nbackends: {}")
    assert faults(path) == [
        f"{path}: configures the gateway, not an engine: gateway check {path} reads it"
    ]


def test_what_is_no_mapping(tmp_path: Path) -> None:
    assert faults(write(tmp_path, a="- model: m")) == [
        "a.yaml: must be a mapping with model and the settings of its engine"
    ]


def test_references_to_the_environment_stay_references(tmp_path: Path) -> None:
    path = write(tmp_path, a="model: m\nenv: {HF_TOKEN: ${HF_TOKEN}}")

    assert load_engine(path).env == {"HF_TOKEN": "${HF_TOKEN}"}
