from __future__ import annotations

import re
import signal
import subprocess
import sys

import httpx
import pytest

SIM = [sys.executable, "-m", "gateway", "sim"]


def refused(*arguments: str) -> str:
    """What it says when it does not start, for wrong usage."""
    done = subprocess.run([*SIM, *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    # Typer draws a box around it.
    return " ".join(done.stderr.replace("│", " ").split())


def test_it_starts_says_what_it_simulates_and_stops() -> None:
    flags = "--port 0 --model m --max-num-batched-tokens 512 --max-num-seqs 64 --block-size 32"
    more = "--num-gpu-blocks 5000 --speed 10 --api-key secret"
    process = subprocess.Popen(
        [*SIM, *flags.split(), *more.split()], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(
            r"simulated vLLM on (http://127\.0\.0\.1:\d+): model m, h100-llama-70b, "
            r"max_num_batched_tokens 512, max_num_seqs 64, block_size 32, 5000 blocks, speed 10\n",
            line,
        )
        assert found is not None, line
        with httpx.Client(base_url=found[1], trust_env=False, verify=False) as client:
            assert client.get("/health").status_code == 200
            assert client.get("/v1/models").status_code == 401
            headers = {"authorization": "Bearer secret"}
            (model,) = client.get("/v1/models", headers=headers).json()["data"]
            assert model["id"] == "m"
            assert client.get("/health").headers.get_list("server") == [
                f"simulated-vllm/{client.get('/version').json()['version']}"
            ]
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--preset", "abacus"), "there are h100-llama-70b, cpu-tiny"),
        (
            ("--max-num-batched-tokens", "64", "--max-num-seqs", "128"),
            "must be greater than or equal to max_num_seqs (128)",
        ),
        (("--speed", "0"), "speed must be above 0"),
        (("--block-size", "0"), "block_size must be above 0"),
        (("--max-num-seqs", "0"), "max_num_seqs must be above 0"),
        (("--port", "80011"), "--port: 80011 is not from 0 to 65535"),
        (("--port", "-1"), "--port: -1 is not from 0 to 65535"),
    ],
)
def test_flags_no_engine_would_start_with_are_refused(
    arguments: tuple[str, ...], words: str
) -> None:
    assert words in refused(*arguments)
