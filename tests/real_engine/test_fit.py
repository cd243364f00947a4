"""`gateway sim --fit` on what two real engines took, and `gateway plan` with it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.engine.record import sizes
from tests.real_engine.lab import Lab, on_engine
from tests.support.gateway_process import ADMIN_KEY, KEY

pytestmark = on_engine

LIMIT = 4.0
"""A factor: one chunk size foretells little of another; docs/real-engine.md has a whole family."""


def gateway(site: Lab, folder: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GATEWAY_KEY": KEY}
    environment |= {"GATEWAY_URL": site.gateway.url, "GATEWAY_ADMIN_KEY": ADMIN_KEY}
    command = [sys.executable, "-m", "gateway", *arguments]
    ran = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


async def test_each_engine_is_foretold_from_the_other(site: Lab, tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps(one)}\n" for one in sizes(24))
    (tmp_path / "sizes.jsonl").write_text(lines)

    def work() -> tuple[dict[str, Any], str]:
        gateway(
            site, tmp_path, "bench", "--arm", "b", "--arm", "a", "--model", "m",
            "--workload", "replay", "--dataset", "sizes.jsonl", "--requests", "24",
            "--concurrency", "4", "--rounds", "2", "--json", "measured.json",
            "--threshold", "p90=off", "--extra-body", '{"ignore_eos": true}',
        )  # fmt: skip
        said = gateway(
            site, tmp_path, "sim", "--fit", "measured.json", "--block-size", "128",
            "--max-num-seqs", "32", "--json", "calibration.json",
        )  # fmt: skip
        return json.loads((tmp_path / "calibration.json").read_text()), said

    found, said = await asyncio.to_thread(work)
    print(said)
    assert found["chunks"] == [64, 512], "the engines tell, or the configuration does"
    assert found["machine"]["latency"]["base"] > 0.001
    first = [one for one in found["held_out"] if one["figure"] == "ttft"]
    assert len(first) == 4
    for one in first:
        assert 1 / LIMIT < one["predicted"] / one["measured"] < LIMIT, one
