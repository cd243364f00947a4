"""Start real engines, several at once, and end them whatever happens."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine.install import Installation
from benchmarks.process import free_port, start, stop, wait_until_ready

MODEL = "tiny"
"""What the engines call their model."""
CONTEXT = 16_384
SEQUENCES = 32
START_TIMEOUT = 600.0
"""Seconds. Two at once took 75 to 110 s on two quiet cores, 410 s beside much other work."""

FLAGS = (
    "--served-model-name", MODEL,
    "--host", "127.0.0.1",
    "--dtype", "float32",
    "--enforce-eager",
    "--max-model-len", str(CONTEXT),
    "--max-num-seqs", str(SEQUENCES),
    "--enable-prompt-tokens-details",
    "--enable-auto-tool-choice",
    "--tool-call-parser", "hermes",
)  # fmt: skip
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OMP_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Launch:
    """How one engine is started.

    Attributes:
        budget: `--max-num-batched-tokens`, the tokens of one step: a long prompt's chunk.
        api_key: demanded of every request under `/v1`.
        developer: whether it tells its configuration at `/server_info`.
    """

    budget: int
    api_key: str | None = None
    developer: bool = False

    def flags(self) -> list[str]:
        """All but the model's folder and the port, which differ from run to run."""
        key = [] if self.api_key is None else ["--api-key", self.api_key]
        return [*FLAGS, "--max-num-batched-tokens", str(self.budget), *key]

    def environment(self) -> dict[str, str]:
        return ENVIRONMENT | ({"VLLM_SERVER_DEV_MODE": "1"} if self.developer else {})


@dataclass(frozen=True)
class Engine:
    """A running engine."""

    launch: Launch
    url: str
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def serving(
    installation: Installation, folder: Path, launches: Sequence[Launch]
) -> Iterator[list[Engine]]:
    """Start all of them at once, each with a home of its own, wait until they answer, end them.

    Args:
        folder: for logs and homes.

    Raises:
        benchmarks.process.ServerFailed: one did not start; the message holds the end of its log.
    """
    with ExitStack() as stack:
        started = [_start(installation, folder, one, stack) for one in launches]
        for engine, port in started:
            wait_until_ready(engine.process, port, "/health", engine.log, START_TIMEOUT)
        yield [engine for engine, _ in started]


def _start(
    installation: Installation, folder: Path, launch: Launch, stack: ExitStack
) -> tuple[Engine, int]:
    port = free_port()
    home = folder / f"home-{port}"
    home.mkdir(parents=True)
    log = folder / f"engine-{launch.budget}-{port}.log"
    # The interpreter's folder comes first: vLLM looks for programs of its environment.
    inherited = {"HOME": str(home), "PATH": f"{installation.python.parent}:/usr/bin:/bin"}
    variables = [f"{name}={value}" for name, value in (inherited | launch.environment()).items()]
    command = [
        "env", "-i", *variables,
        str(installation.python), "-m", "vllm.entrypoints.openai.api_server",
        "--model", str(installation.model), "--port", str(port), *launch.flags(),
    ]  # fmt: skip
    process = start(command, core=None, log=log)
    stack.callback(stop, process)
    return Engine(launch, f"http://127.0.0.1:{port}", process, log), port
