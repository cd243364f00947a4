"""What `gateway sim --fit` needs, from the real engine: `python -m benchmarks.engine.record`.

One run of `gateway bench` for each chunk size, all with the same requests: prompts of many
lengths, of which nothing is cached.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.engine.cells import Plan
from benchmarks.engine.install import installed, lacking
from benchmarks.engine.serving import MODEL, Engine, Launch, serving

REQUESTS = 60
USERS = 6
OUTPUT_TOKENS = 8
SHORTEST, LONGEST = 100, 3000
"""Of the prompts, in the tokens that `gateway bench` is asked for: about four characters each."""
SEED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Record; 0 if all was measured, 2 with a sentence if it cannot be."""
    options = _options(arguments)
    reason = lacking()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    lengths = folder / "sizes.jsonl"
    lengths.write_text("".join(f"{json.dumps(line)}\n" for line in sizes(REQUESTS)))
    installation = installed()
    files = []
    for chunk in options.chunk or Plan().budgets:
        file = folder / f"chunk-{chunk}.json"
        # One engine at a time: another one would share its cores, even idle.
        with (
            tempfile.TemporaryDirectory() as scratch,
            serving(installation, Path(scratch), [Launch(chunk)]) as (engine,),
        ):
            _bench(engine, lengths, file)
        files.append(f"--fit {chunk}={shlex.quote(str(file))}")
    print(f"gateway sim {' '.join(files)}")
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


def _bench(engine: Engine, lengths: Path, file: Path) -> None:
    command = [
        sys.executable, "-m", "gateway", "bench", "--url", engine.url, "--model", MODEL,
        "--engine", f"vllm={engine.url}", "--workload", "replay", "--dataset", str(lengths),
        "--requests", str(REQUESTS), "--concurrency", str(USERS), "--seed", str(SEED),
        "--threshold", "p90=off", "--threshold", "hit-rate=off",
        # A model of random weights may end its answer at once.
        "--extra-body", '{"ignore_eos": true}', "--json", str(file),
    ]  # fmt: skip
    subprocess.run(command, check=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine.record",
        description="Run `gateway bench` on vLLM's CPU build once for each chunk size, for "
        "`gateway sim --fit`. Needs a quiet machine and a quarter of an hour. See "
        "docs/real-engine.md.",
    )
    parser.add_argument("folder", type=Path, help="for the results, a file for each chunk size")
    parser.add_argument(
        "--chunk", type=int, action="append", help="instead of the whole family, once for each"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
