"""vLLM's CPU build in an environment of its own, and the tiny model, in a cache outside the tree.

The cache is a convenience: a folder for each state of what it is made from, made anew where it is
missing, and put in its place only once it is whole.

PyTorch stands in no lock file: which build of a version fits depends on the machine, and what is
asked for by number alone is on most platforms a CUDA build. pip takes a build for CPUs where its
settings let it see one.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
LOCK, MODEL_SCRIPT = HERE / "requirements.lock", HERE / "make_model.py"
TORCH = "torch==2.13.0"
# pip takes two minutes for what uv does in ten seconds.
UV = "uv==0.13.9"
NEEDED_KIB = 8 * 1024 * 1024
"""Memory for two engines, and for what else runs beside them."""


class NotInstalled(RuntimeError):
    """The engine could not be installed; the message says what to do."""


@dataclass(frozen=True)
class Installation:
    """Attributes:
    python: the interpreter of the engine's environment.
    model: the folder of the tiny model.
    """

    python: Path
    model: Path


def lacking() -> str | None:
    """Why the engine cannot run on this machine, as a sentence, if it cannot."""
    if sys.platform != "linux":
        return f"vLLM's CPU build runs on Linux, and this is {sys.platform}"
    if platform.machine() == "x86_64" and "avx2" not in Path("/proc/cpuinfo").read_text().split():
        return "vLLM's CPU build needs a processor with AVX2"
    free = _available_kib()
    if free < NEEDED_KIB:
        return f"two engines need 8 GiB of free memory, and {free >> 20} GiB are"
    return None


def installed() -> Installation:
    """Install what is not there yet: minutes and 2 GB at the first time.

    Raises:
        NotInstalled: PyTorch came as a build for CUDA.
        subprocess.CalledProcessError: an installer failed, and has said why.
    """
    python = sys.version.encode()
    environment = _cached("environment", LOCK.read_bytes() + TORCH.encode() + python, _install)
    interpreter = environment / "bin" / "python"

    def make(folder: Path) -> None:
        _run(interpreter, MODEL_SCRIPT, folder)

    model = _cached("model", MODEL_SCRIPT.read_bytes() + environment.name.encode(), make)
    return Installation(interpreter, model)


def _install(folder: Path) -> None:
    _run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-compile")
    _run(*pip, UV)
    _run(
        folder / "bin" / "uv", "pip", "install", "--quiet", "--no-cache", "--no-deps",
        "--require-hashes", "--python", python, "--requirements", LOCK,
    )  # fmt: skip
    _run(*pip, "--no-deps", TORCH)
    told = _run(python, "-c", "import torch; print(torch.version.cuda)", capture=True)
    if told != "None":
        raise NotInstalled(
            f"pip chose a build of {TORCH} for CUDA {told}. Let it see one for CPUs: "
            "docs/real-engine.md."
        )


def _cached(kind: str, made_from: bytes, make: Callable[[Path], None]) -> Path:
    """The folder of this kind for these ingredients; `make` fills it where it is not there."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "ttft-gateway" / "engine" / f"{kind}-{sha256(made_from).hexdigest()[:16]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as building:
            made = Path(building) / kind
            make(made)
            _put(made, folder)
    return folder


def _put(made: Path, folder: Path) -> None:
    """Move it to its place, unless another run was first."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.exists():
            raise


def _run(*command: str | Path, capture: bool = False) -> str:
    """Run it; what it wrote to standard output, if that is captured.

    Nothing is fetched but packages: the model's library would look for newer versions of it.
    """
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    ran = subprocess.run(
        command, check=True, env=environment, text=True, stdout=subprocess.PIPE if capture else None
    )
    return (ran.stdout or "").strip()


def _available_kib() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, value, *_ = line.split()
        if name == "MemAvailable:":
            return int(value)
    return 0
