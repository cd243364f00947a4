"""`gateway engine render`: every form in old and new releases, word for word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run

GOLDEN = Path(__file__).with_name("golden")
SUFFIXES = {
    "command": "sh",
    "config": "config.yaml",
    "config-json": "json.yaml",
    "compose": "compose.yaml",
    "kubernetes": "kubernetes.yaml",
}


@pytest.mark.parametrize("version", ["0.6.3.post1", "0.9.2", "0.32"])
@pytest.mark.parametrize("form", SUFFIXES)
def test_rendered_as_it_was_when_last_looked_at(run: Run, form: str, version: str) -> None:
    """After a change: gateway engine render … > tests/cli/golden/VERSION.SUFFIX, and read it."""
    result = run(
        "engine",
        "render",
        str(GOLDEN / "engine.yaml"),
        f"--for={form}",
        f"--engine-version={version}",
    )

    assert result.status == 0
    assert result.out == (GOLDEN / f"{version}.{SUFFIXES[form]}").read_text()


def test_the_command_is_the_default_and_fits_on_one_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text('{model: "a b", engine_version: "0.9", block_size: 16}')

    assert run("engine", "render", str(file), "--one-line").out == (
        "# For vLLM 0.9.\nvllm serve 'a b' --port 8000 --block-size 16\n"
    )
    assert run("engine", "render", str(file)).out == (
        "# For vLLM 0.9.\nvllm serve 'a b' \\\n  --port 8000 \\\n  --block-size 16\n"
    )


def test_json_has_no_comments_so_they_go_to_standard_error(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("{model: m, flags: {swap-space: 4}}")

    result = run("engine", "render", str(file), "--for=config-json")

    assert json.loads(result.out) == yaml.safe_load(result.out) == {"model": "m", "port": 8000}
    assert result.err.splitlines() == [
        "--swap-space is left out: removed after 0.16.0 (preempted requests are computed anew, "
        "not swapped out)",
        "to be read by: vllm serve --config FILE.yaml",
    ]


def test_what_vllm_would_refuse_is_told_on_standard_error(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("{model: m, max_num_batched_tokens: 128, max_num_seqs: 256}")

    result = run("engine", "render", str(file))

    assert result.status == run("check", "--engine", str(file)).status == 2
    assert result.out.startswith("# For vLLM 0.32.\nvllm serve m")
    assert result.err == (
        "error: max_num_batched_tokens: 128 is below max_num_seqs (256), so vLLM does not start\n"
    )


def test_a_version_that_would_start_with_it_is_no_failure(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("{model: m, max_num_batched_tokens: 128}")

    old, new = (
        run("engine", "render", str(file), f"--engine-version={v}") for v in ("0.9", "0.10")
    )

    assert (old.status, new.status) == (2, 0)
    assert old.err.startswith("error: max_num_seqs: is not stated, and 256 or more by default")
    assert new.err == ""


def test_a_flag_that_is_left_out_keeps_nothing_from_starting(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("{model: m, flags: {swap-space: 4}}")

    result = run("engine", "render", str(file))

    assert (result.status, result.err) == (0, "")
    assert "--swap-space is left out" in result.out
    assert run("check", "--engine", str(file)).status == 2


def test_the_status_is_told_by_its_help(run: Run) -> None:
    told = " ".join(run("engine", "render", "--help").out.split())
    assert "Ends with status 2 if vLLM would refuse what is printed" in told


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--engine-version", "0.4"), "is older than 0.6"),
        (("--for", "helm"), "Invalid value for '--for'"),
        (("--for", "compose", "--one-line"), "--one-line is for --for command"),
    ],
)
def test_wrong_usage(run: Run, tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("model: m")

    result = run("engine", "render", str(file), *arguments)

    assert (result.status, result.out) == (2, "")
    assert complaint in result.err


def test_faults_with_their_paths(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("{port: x, engine_version: 0.10}")

    result = run("engine", "render", str(file))

    assert (result.status, result.out) == (2, "")
    assert result.err.splitlines() == [
        "port: must be a port, from 1 to 65535",
        'engine_version: must be in quotes, such as "0.10": YAML takes it for the number 0.1',
        "model: is missing: the model to serve, such as meta-llama/Meta-Llama-3-70B-Instruct",
    ]
