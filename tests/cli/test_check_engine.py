"""`gateway check --engine`: its page, its answer for programs, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "e.yaml"
    path.write_text(
        "{model: m, max_num_batched_tokens: 100, max_num_seqs: 64, prefix_caching: true, "
        "chunked_prefill: true}"
    )
    return path


PAGE = """\
{file} for vLLM 0.6.3: 1 error, 1 warning.

error: max_num_batched_tokens: 100 is no multiple of block_size (16) while chunked prefill and \
prefix caching are on: the engine fails on the first request
  holds for: V0 of 0.6
  try:       a multiple of 16, such as 96
  source:    vllm/core/scheduler.py in 0.6.3.post1, _get_num_new_tokens; can_reuse_prefix

warning: max_num_batched_tokens: 100 is below 128, so a prompt of 2000 tokens takes at least 20 \
steps to its first token
  holds for: every version
  try:       512, then 256 and 1024 beside it
  source:    experience with 0.6-era engines on H100, Llama 3 70B; the CPU build of 0.32.0: P50 \
1096 ms at 64, 286 ms at 512
"""


def test_the_page(run: Run, file: Path) -> None:
    result = run("check", "--engine", str(file), "--engine-version", "0.6.3")

    assert (result.status, result.err) == (2, "")
    assert result.out == PAGE.format(file=file)


def test_the_same_file_is_no_error_in_the_newest_version(run: Run, file: Path) -> None:
    result = run("check", "--engine", str(file))

    assert result.status == 0
    assert result.out.startswith(f"{file} for vLLM 0.32: 1 warning, 1 note.\n")


def test_nothing_found(run: Run, file: Path) -> None:
    file.write_text("{model: m, max_num_batched_tokens: 512, max_num_seqs: 64}")

    result = run("check", "--engine", str(file))

    assert (result.status, result.out) == (
        0,
        f"{file} for vLLM 0.32: nothing to say against it.\n",
    )


def test_the_answer_for_programs(run: Run, file: Path) -> None:
    result = run("check", "--engine", str(file), "--engine-version=0.6.3", "--json")

    answer = json.loads(result.out)
    assert result.status == 2
    assert (answer["ok"], answer["engine_version"]) == (False, "0.6.3")
    assert answer["findings"][0] == {
        "field": "max_num_batched_tokens",
        "severity": "error",
        "reason": "100 is no multiple of block_size (16) while chunked prefill and prefix caching "
        "are on: the engine fails on the first request",
        "versions": "V0 of 0.6",
        "advice": "a multiple of 16, such as 96",
        "source": "vllm/core/scheduler.py in 0.6.3.post1, _get_num_new_tokens; can_reuse_prefix",
    }
    newest = run("check", "--engine", str(file), "--json")
    assert (newest.status, json.loads(newest.out)["ok"]) == (0, True)


def test_faults_of_the_file(run: Run, file: Path) -> None:
    file.write_text("block_size: x")
    faults = [
        "block_size: must be a whole number, at least 1",
        "model: is missing: the model to serve, such as meta-llama/Meta-Llama-3-70B-Instruct",
    ]

    plain = run("check", "--engine", str(file))
    assert (plain.status, plain.out, plain.err.splitlines()) == (2, "", faults)
    programs = run("check", "--engine", str(file), "--json")
    assert (programs.status, json.loads(programs.out)) == (2, {"ok": False, "faults": faults})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("gateway.yaml", "--engine", "e.yaml"), "not both"),
        (("--engine-version", "0.32"), "--engine-version goes with --engine FILE"),
    ],
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    result = run("check", *arguments)

    assert (result.status, result.out) == (2, "")
    assert complaint in result.err
