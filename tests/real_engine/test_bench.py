"""`gateway bench` on arms that differ in nothing but their token budget."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.real_engine.lab import Lab, on_engine
from tests.support.gateway_process import ADMIN_KEY, KEY

pytestmark = on_engine


def bench(site: Lab, file: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable, "-m", "gateway", "bench", "--arm", "b", "--arm", "a", "--model", "m",
        "--workload", "no-shared-prefix", "--prefix-tokens", "1000",
        "--requests", "8", "--concurrency", "2", "--rounds", "3", "--json", str(file),
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "HOME": str(file.parent), "GATEWAY_KEY": KEY}
    environment |= {"GATEWAY_URL": site.gateway.url, "GATEWAY_ADMIN_KEY": ADMIN_KEY}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


async def test_it_says_that_the_small_budget_is_later(site: Lab, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    ran = await asyncio.to_thread(bench, site, file)
    assert file.exists(), ran.stdout + ran.stderr
    result = json.loads(file.read_text())
    assert not result["simulated"]
    assert {arm["arm"]: arm["engine"].get("version") for arm in result["arms"]}
    found = {one["figure"]: one for one in result["comparisons"]}["p50_ttft_ms"]
    print(found["sentence"])
    assert (found["base"], found["other"]) == ("b", "a")
    assert found["ratio"] > 1.3 and found["separate"], found
    assert "later" in found["sentence"]
