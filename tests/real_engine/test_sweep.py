"""The sweep of `benchmarks.engine` against the two engines that run already."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks.engine.cells import QUICK
from tests.real_engine.lab import ARMS, BUDGETS, ENGINE_KEY, Lab, on_engine

pytestmark = on_engine
ROOT = Path(__file__).parents[2]
LAST = (1000, "cold")


def sweep(site: Lab, file: Path) -> subprocess.CompletedProcess[str]:
    engines = [f"--engine={BUDGETS[arm]}={site.engines[arm].base_url}" for arm in ARMS]
    command = [sys.executable, "-m", "benchmarks.engine.sweep", "--quick", f"--json={file}"]
    return subprocess.run(
        [*command, *engines, f"--key={ENGINE_KEY}"], cwd=ROOT, capture_output=True, text=True
    )


async def test_a_quick_sweep_measures_each_cell_and_does_so_once(site: Lab, tmp_path: Path) -> None:
    file = tmp_path / "sweep.json"
    ran = await asyncio.to_thread(sweep, site, file)
    assert ran.returncode == 0, ran.stderr
    content = json.loads(file.read_text())
    cells = content["cells"]
    assert len(cells) == len(QUICK.budgets) * len(QUICK.prompts) * 2
    for cell in cells:
        assert len(cell["ttft_ms"]) == QUICK.requests
        # Tokens that come together have no gap between them.
        assert 0 < len(cell["gap_ms"]) <= QUICK.requests * (QUICK.tokens - 1)
        whole = (cell["prompt"] - 1) // 128 * 128 / cell["prompt"]
        assert cell["cached_share"] == (0 if cell["cache"] == "cold" else round(whole, 4))
    cold = {c["budget"]: median(c["ttft_ms"]) for c in cells if (c["prompt"], c["cache"]) == LAST}
    assert cold[64] > cold[512]

    again = await asyncio.to_thread(sweep, site, file)
    assert again.returncode == 0 and "round" not in again.stdout
    assert json.loads(file.read_text()) == content
