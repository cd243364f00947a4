"""`gateway check`: every word of its page, its answer for programs, and how faults end it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

SECRETS = {
    "GATEWAY_KEY": "sk-9dXc2Lq7Vn4Rb8Tw1Zk6Mf3Hp5Js0Gy",
    "OPS_KEY": "8f0b7d3c5a1e9f2b4d6c8e0a1b3d5f79",
    "ENGINE_KEY": "engine-secret",
}

UNEVEN = """
models:
  llama-3-70b:
    aliases: [gpt-4o-local, "claude-*"]
    upstream_model: meta-llama/Llama-3-70B-Instruct
    experiment: {name: chunk-size, slo_ttft_ms: 500}
    arms:
      chunk-512: {weight: 90, backends: [vllm-a, vllm-b]}
      chunk-2048: {weight: 10, role: canary, backends: [vllm-c]}
  small:
    arms:
      only: {weight: 1, backends: [vllm-d]}
backends:
  vllm-a:
    url: http://a:8000
    api_key: ${ENGINE_KEY}
    engine: {max_num_batched_tokens: 512, block_size: 16}
  vllm-b: {url: "http://b:8000", engine: {max_num_batched_tokens: 512}}
  vllm-c: {url: "http://c:8000", engine: {max_num_batched_tokens: 2048, block_size: 32}}
  vllm-d: {url: "http://d:8000"}
  vllm-e: {url: "http://e:8000"}
keys:
  - {name: dev, key: "${GATEWAY_KEY}", requests_per_minute: 600, max_concurrency: 32, arms: [only]}
  - {name: ops, key: "${OPS_KEY}", models: [small], arms: none}
"""

UNEVEN_PAGE = """\
{file} has no faults: 2 models, 3 arms, 5 backends, 2 keys.

Model llama-3-70b
  also answers to gpt-4o-local, claude-*
  its engines call it meta-llama/Llama-3-70B-Instruct
  experiment chunk-size, split by session, first token within 500 ms
  ARM         ROLE     WEIGHT  SHARE  PER BACKEND  BACKENDS
  chunk-512   control  90      90 %   45 %         vllm-a, vllm-b
  chunk-2048  canary   10      10 %   10 %         vllm-c
  chunk-2048 against chunk-512: confounded. It can stop a canary that is worse in spite of less \
load, never promote one:
  - a backend of chunk-2048 gets 10 % of the traffic, one of chunk-512 45 %: choose weights in \
proportion to the number of backends, or add a baseline arm
  - chunk-2048 differs from chunk-512 in block_size, not only in the chunk settings
  Bear in mind:
  - chunk-2048 has one backend: the comparison is one of machines as much as of configurations

Model small
  experiment default, split by session
  ARM   ROLE     WEIGHT  SHARE  PER BACKEND  BACKENDS
  only  control  1       100 %  100 %        vllm-d

Keys
  KEY  MODELS  REQUESTS/MIN  TOKENS/MIN  AT ONCE  ARMS BY HAND
  dev  all     600           -           32       only
  ops  small   -             -           -        none

Worth knowing
  - models.llama-3-70b.arms: no arm has the role control; chunk-512 counts as it
  - models.small.experiment.slo_ttft_ms: not set, so no request counts as in time or late
  - models.small.arms: one arm, so there is nothing to compare it with
  - backends.vllm-d.engine.max_num_batched_tokens: not stated, so what the engine runs with \
cannot be verified
  - backends.vllm-e: belongs to no arm, so it gets no request
  - keys[1]: ops has no limits, so it can take the place of every other key
  - admin.key: not set, so the admin API and the commands that use it are off
  - metrics.key: not set, so /metrics answers this machine only
"""


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def uneven(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.yaml"
    path.write_text(UNEVEN)
    return path


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_the_page_of_an_uneven_comparison(run: Run, uneven: Path) -> None:
    result = run("check", str(uneven))

    assert (result.status, result.err) == (0, "")
    assert lines(result.out) == lines(UNEVEN_PAGE.format(file=uneven))


def test_the_page_of_what_init_writes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    run("init", str(path))

    page = lines(run("check", str(path)).out)

    assert page[0] == f"{path} has no faults: 1 model, 2 arms, 2 backends, 1 key."
    start = page.index("Model llama-3-70b")
    assert page[start + 5 :] == [
        "  chunk-2048 against chunk-512: comparable, as far as the configuration says.",
        "  Bear in mind:",
        "  - chunk-512 and chunk-2048 have one backend each: the comparison is one of machines as "
        "much as of configurations",
        "",
        "Keys",
        "  KEY  MODELS  REQUESTS/MIN  TOKENS/MIN  AT ONCE  ARMS BY HAND",
        "  dev  all     -             -           32       any",
        "",
        "Worth knowing",
        "  - metrics.key: not set, so /metrics answers this machine only",
    ]


def test_names_are_not_taken_for_markup(run: Run, uneven: Path) -> None:
    uneven.write_text(UNEVEN.replace("meta-llama/Llama-3-70B-Instruct", '"[red]x[/nope]"'))

    assert "  its engines call it [red]x[/nope]" in lines(run("check", str(uneven)).out)


def test_the_answer_for_programs(run: Run, uneven: Path) -> None:
    result = run("check", str(uneven), "--json")

    answer: dict[str, Any] = json.loads(result.out)
    model = answer["models"][0]
    assert result.status == 0
    assert answer["ok"] is True
    assert model["arms"][0] == {
        "name": "chunk-512",
        "role": "control",
        "weight": 90,
        "share": 0.9,
        "backends": ["vllm-a", "vllm-b"],
        "load_per_backend": 0.45,
    }
    assert model["comparison"]["reference"] == "chunk-512"
    assert len(model["comparison"]["confounded"]) == 2
    assert answer["models"][1]["comparison"] is None
    assert answer["keys"][1] == {
        "name": "ops",
        "models": ["small"],
        "requests_per_minute": None,
        "tokens_per_minute": None,
        "max_concurrency": None,
        "arms": "none",
    }
    assert answer["remarks"][-1].startswith("metrics.key: ")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_secret_is_shown(run: Run, uneven: Path, options: tuple[str, ...]) -> None:
    result = run("check", str(uneven), *options)

    assert not any(secret in result.out + result.err for secret in SECRETS.values())


def test_every_fault_on_its_line_and_status_2(run: Run, uneven: Path) -> None:
    uneven.write_text(UNEVEN.replace("weight: 90", "weight: -1").replace("[small]", "[big]"))

    result = run("check", str(uneven))

    assert (result.status, result.out) == (2, "")
    assert result.err.splitlines() == [
        "models.llama-3-70b.arms.chunk-512.weight: must be a number from 0 to 1000000",
        'keys[1].models[0]: names no model; defined: llama-3-70b, small, or "*" for all',
    ]


def test_faults_for_programs(run: Run, uneven: Path) -> None:
    uneven.write_text(UNEVEN.replace("weight: 90", "weight: -1"))

    result = run("check", str(uneven), "--json")

    assert result.status == 2
    assert json.loads(result.out) == {
        "ok": False,
        "faults": ["models.llama-3-70b.arms.chunk-512.weight: must be a number from 0 to 1000000"],
    }


def test_the_environment_counts_as_for_serve(
    run: Run, uneven: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_SERVER__PORT", "eighty")
    monkeypatch.delenv("OPS_KEY")

    assert run("check", str(uneven)).err.splitlines() == [
        "keys[1].key: the environment variable OPS_KEY is not set",
        "server.port: must be a port, from 1 to 65535, or 0 for any free one (set by "
        "GATEWAY_SERVER__PORT)",
    ]


def test_a_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    result = run("check", str(tmp_path / "none.yaml"))

    assert result.status == 2
    assert result.err == f"{tmp_path}/none.yaml: no such file; gateway init writes one\n"


def test_no_file_named_means_the_usual_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("check")

    assert result.status == 2
    assert result.err == "gateway.yaml: no such file; gateway init writes one\n"


def test_imports_no_server(uneven: Path) -> None:
    """A check of a file must not wait for the imports of what serves it."""
    script = (
        "import sys\n"
        "from gateway.cli.main import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    heavy = {'uvicorn', 'fastapi', 'httpx', 'sqlalchemy', 'prometheus_client'}\n"
        "    print('heavy:', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "check", str(uneven)],
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("heavy: []\n")
