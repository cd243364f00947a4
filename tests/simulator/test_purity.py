from __future__ import annotations

import subprocess
import sys

CORES = "prefix_cache sequence scheduler latency presets config tokenizer answer virtual histogram"


def test_the_cores_do_no_io() -> None:
    """What decides and computes is usable without a server, and imports none."""
    imports = ", ".join(f"gateway.simulator.{core}" for core in CORES.split())
    check = f"import sys, {imports}; print({{'asyncio', 'socket', 'fastapi'}} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("set()\n", "")
