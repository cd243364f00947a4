"""What `gateway sim --fit` needs, from the real engine: `python -m benchmarks.engine.record`.

One engine for each chunk size, all at once behind one gateway, and one run of `gateway bench` over
them: its rounds go from arm to arm, so that whatever the machine does meanwhile hits all alike.
Prompts have many lengths, and nothing of them is cached.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from benchmarks.engine.cells import Plan
from benchmarks.engine.install import installed, lacking
from benchmarks.engine.serving import MODEL, SEQUENCES, Engine, Launch, serving
from benchmarks.process import free_port, start, stop, wait_until_ready

REQUESTS = 60
USERS = 6
ROUNDS = 5
OUTPUT_TOKENS = 8
SHORTEST, LONGEST = 100, 3000
"""Of the prompts, in the tokens that `gateway bench` is asked for: about four characters each."""
SEED = 1
READY_TIMEOUT = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Record; 0 if all was measured, 2 with a sentence if it cannot be."""
    options = _options(arguments)
    reason = lacking()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    chunks = options.chunk or Plan().budgets
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            serving(installed(), folder, [Launch(chunk) for chunk in chunks]) as engines,
            _gateway(folder, engines) as (url, keys),
        ):
            _bench(folder, url, keys, engines, options.json)
    print(f"gateway sim --fit {options.json}")
    return 0


def sizes(count: int) -> list[dict[str, object]]:
    """As an access log tells them: as many short prompts as long ones, by their logarithm."""
    source = random.Random(SEED)
    steps = LONGEST / SHORTEST
    lengths = [round(SHORTEST * steps ** (place / (count - 1))) for place in range(count)]
    source.shuffle(lengths)
    return [
        {
            "outcome": "ok",
            "stream": True,
            "prompt_tokens": length,
            "cached_tokens": 0,
            "completion_tokens": OUTPUT_TOKENS,
        }
        for length in lengths
    ]


def _arm(engine: Engine) -> str:
    return f"chunk-{engine.launch.budget}"


@contextmanager
def _gateway(folder: Path, engines: Sequence[Engine]) -> Iterator[tuple[str, dict[str, str]]]:
    """Its address, and the variables that hold its keys."""
    keys = {name: f"sk-{secrets.token_hex(16)}" for name in ("GATEWAY_KEY", "GATEWAY_ADMIN_KEY")}
    port = free_port()
    content: dict[str, Any] = {
        "server": {"port": port, "drain_delay": 0},
        "admin": {"key": keys["GATEWAY_ADMIN_KEY"]},
        "models": {
            MODEL: {"arms": {_arm(one): {"weight": 1, "backends": [_arm(one)]} for one in engines}}
        },
        "backends": {
            _arm(one): {
                "url": one.url,
                "engine": {
                    "max_num_batched_tokens": one.launch.budget,
                    "max_num_seqs": SEQUENCES,
                },
            }
            for one in engines
        },
        "keys": [{"name": "bench", "key": keys["GATEWAY_KEY"]}],
        "database_url": f"sqlite:///{folder / 'gateway.db'}",
    }
    path = folder / "gateway.yaml"
    path.write_text(yaml.safe_dump(content))
    path.chmod(0o600)
    log = folder / "gateway.log"
    command = [sys.executable, "-m", "gateway", "serve", "-c", str(path)]
    process = start(command, core=None, log=log)
    try:
        wait_until_ready(process, port, "/ready", log, READY_TIMEOUT)
        yield f"http://127.0.0.1:{port}", keys
    finally:
        stop(process)


def _bench(
    folder: Path, url: str, keys: dict[str, str], engines: Sequence[Engine], file: Path
) -> None:
    lengths = folder / "sizes.jsonl"
    lengths.write_text("".join(f"{json.dumps(line)}\n" for line in sizes(REQUESTS)))
    command = [
        sys.executable, "-m", "gateway", "bench", "--url", url, "--model", MODEL,
        *(part for one in engines for part in ("--arm", _arm(one))),
        "--workload", "replay", "--dataset", str(lengths), "--requests", str(REQUESTS),
        "--concurrency", str(USERS), "--rounds", str(ROUNDS), "--seed", str(SEED),
        "--threshold", "p90=off", "--threshold", "hit-rate=off",
        # A model of random weights may end its answer at once.
        "--extra-body", '{"ignore_eos": true}', "--json", str(file),
    ]  # fmt: skip
    subprocess.run(command, check=True, env=os.environ | keys)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine.record",
        description="Run `gateway bench` over engines of vLLM's CPU build that differ in their "
        "chunk size, for `gateway sim --fit`. Needs a quiet machine, 2.5 GB of memory for each "
        "engine and eight minutes. See docs/real-engine.md.",
    )
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="for the results")
    parser.add_argument(
        "--chunk", type=int, action="append", help="instead of the whole family, once for each"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
