"""Commands and `--config` files: that a release reads both, and understands the same."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.vllm import (
    EngineConfig,
    Version,
    command,
    config_command,
    config_json,
    config_yaml,
    launch,
)
from tests.vllm.loaders import LOADERS, meant

TEXT = st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), min_size=1)
WORDS = TEXT.filter(lambda text: not text.startswith("-"))
CONFIGS = st.fixed_dictionaries(
    {"model": st.just("org/model")},
    optional={
        "served_model_name": WORDS | st.lists(WORDS, min_size=1, max_size=3),
        "max_num_batched_tokens": st.integers(1, 9000),
        "max_model_len": st.integers(1, 9000),
        "gpu_memory_utilization": st.floats(0.01, 1),
        "prefix_caching": st.booleans(),
        "chunked_prefill": st.booleans(),
        "prompt_tokens_details": st.booleans(),
        "tool_call_parser": st.just("hermes"),
        "reasoning_parser": st.just("qwen3"),
        "flags": st.fixed_dictionaries(
            {},
            optional={
                "chat-template": WORDS,
                "seed": st.integers(-3, 3),
                "enforce-eager": st.booleans(),
                "disable-log-stats": st.booleans(),
                "enable-lora": st.booleans(),
                "swap-space": st.integers(0, 4),
                "no-enable-expert-parallel": st.booleans(),
                "kv-events-config": st.just({"publisher": "zmq", "buffer_steps": 3}),
                "allowed-origins": st.just(["https://a.example"]),
            },
        ),
    },
)


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028"])
def test_a_value_of_several_lines_sets_nothing_else(end: str) -> None:
    found = launch(EngineConfig(model="org/model", flags={"chat-template": f"-{end}seed: 7"}))
    assert yaml.safe_load(config_yaml(found)) == {"model": "org/model", "port": 8000}


@pytest.mark.parametrize("version", LOADERS)
@given(data=CONFIGS)
def test_the_file_and_the_command_mean_the_same(version: str, data: dict[str, Any]) -> None:
    found = launch(EngineConfig.model_validate(data), Version.parse(version))
    _, _, _, *direct = shlex.split(command(found, one_line=True), comments=True)
    values = yaml.safe_load(config_yaml(found)) or {}
    beside = shlex.split(config_command(found))
    beside = beside[beside.index("FILE.yaml") + 1 :]

    in_file = LOADERS[version]({key: value for key, value in values.items() if key != "model"})

    assert meant(in_file + beside, version) == meant(direct, version)
    assert json.loads(config_json(found)) == values


@pytest.mark.parametrize("version", LOADERS)
def test_the_model_is_told_once(version: str) -> None:
    found = launch(EngineConfig(model="org/model"), Version.parse(version))

    in_file = "model" in yaml.safe_load(config_yaml(found))

    assert in_file is (found.version >= Version.parse("0.8"))
    assert ("org/model" in config_command(found)) is not in_file


@given(st.dictionaries(st.sampled_from("ABC"), TEXT.filter(lambda text: "${" not in text)), TEXT)
def test_a_shell_gives_every_word_on_as_it_was(env: dict[str, str], template: str) -> None:
    config = EngineConfig(model="a b", env=env, flags={"chat-template": template})
    script = command(launch(config))
    words = shlex.split(script.replace("\\\n", ""), comments=True)

    given_on = words[words.index("vllm") :]

    assert given_on[:3] == ["vllm", "serve", "a b"]
    assert "--chat-template" in given_on[-2] or given_on[-1] == f"--chat-template={template}"
    assert words[: len(env)] == [f"{name}={value}" for name, value in env.items()]


def test_a_real_shell_runs_the_command() -> None:
    config = EngineConfig(
        model="it's $HOME",
        served_model_name=["a", "b c"],
        env={"NOTE": "$(date)", "TOKEN": "${SECRET}"},
        flags={"seed": -1},
    )
    fake = 'vllm() { printf "%s|" "$NOTE" "$TOKEN" "$@"; }\n'

    done = subprocess.run(
        ["sh", "-c", fake + command(launch(config))],
        env={"SECRET": "s3cret", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=10,
    )
    assert done.stdout == (
        "$(date)|s3cret|serve|it's $HOME|--served-model-name|a|b c|--port|8000|--seed=-1|"
    )


def test_a_variable_that_is_not_set_stops_the_command() -> None:
    config = EngineConfig(model="m", env={"TOKEN": "${SECRET}"})

    done = subprocess.run(
        ["sh", "-c", "vllm() { echo ran; }\n" + command(launch(config))],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=10,
    )
    assert done.returncode != 0
    assert "ran" not in done.stdout
