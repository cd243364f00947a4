"""The pinned coding agents, installed from npm into a cache outside the tree.

The cache is a convenience: one folder for each state of `package-lock.json`, made anew where it
is missing, and put in its place only once it is whole.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
OLDEST_NODE = 20
MANIFEST, LOCK = HERE / "package.json", HERE / "package-lock.json"


def versions() -> dict[str, str]:
    """Package names and the versions they are pinned to."""
    pinned: dict[str, str] = json.loads(MANIFEST.read_text())["dependencies"]
    return pinned


def lacking() -> str | None:
    """What is missing to install and run the agents, as a sentence, if anything is."""
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)} not found: apt-get install nodejs npm"
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if int(told.lstrip("v").partition(".")[0]) < OLDEST_NODE:
        return f"node is {told.strip()}; Qwen Code needs {OLDEST_NODE} or newer"
    return None


def installed() -> Path:
    """The folder of the agents' commands; installs them where they are not there yet.

    Raises:
        subprocess.CalledProcessError: npm failed, and has said why.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = sha256(LOCK.read_bytes()).hexdigest()[:16]
    folder = home / "ttft-gateway" / "clients" / digest
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as building:
            for file in (MANIFEST, LOCK):
                shutil.copy(file, building)
            command = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel", "error"]
            subprocess.run(command, cwd=building, check=True)
            _put(Path(building), folder)
    return folder / "node_modules" / ".bin"


def _put(made: Path, folder: Path) -> None:
    """Move it to its place, unless another run was first."""
    try:
        made.rename(folder)
        made.mkdir()
    except OSError:
        if not folder.exists():
            raise
