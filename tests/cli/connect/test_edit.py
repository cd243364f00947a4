"""Settings merged into users' files: what they hold besides stays, and twice is once."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.connect.edit import Unreadable, edited, fragment
from gateway.clients.known import CLIENTS
from gateway.clients.setup import Form, Target, UserFile

TARGET = Target("http://127.0.0.1:8080", "sk-0123456789", "llama", 8192)
FILES = {
    file.path: file
    for profile in CLIENTS.values()
    for file in profile.setup(TARGET, lambda file: None).files
}


def loaded(form: Form, text: str) -> Any:
    if form == "yaml":
        return yaml.safe_load(text)
    return json.loads(text) if form == "json" else tomllib.loads(text)


def of(form: Form, values: dict[str, Any], **defaults: Any) -> UserFile:
    return UserFile("file", form, values, defaults)


every_file = pytest.mark.parametrize("file", FILES.values(), ids=FILES)


@every_file
def test_a_new_file_holds_the_values_and_the_defaults(file: UserFile) -> None:
    text = edited(file, None)
    assert edited(file, "") == edited(file, " \n") == text
    content = loaded(file.form, text)
    for name in file.values:
        assert content[name]
    assert all(content[name] == value for name, value in file.defaults.items())
    assert text.endswith("\n")


@every_file
def test_a_second_time_changes_nothing(file: UserFile) -> None:
    once = edited(file, None)
    assert edited(file, once) == once


@every_file
def test_what_is_pasted_by_hand_is_enough(file: UserFile) -> None:
    assert edited(of(file.form, dict(file.values)), fragment(file) + "\n") == fragment(file) + "\n"


CODEX = """\
# mine
model = "gpt-5"   # the best
approval_policy = "never"

[mcp_servers.files]   # keep
command = "npx"

[model_providers.ttft-gateway]
name = "Old"
base_url = "http://old/v1"
env_key = "OLD"
query_params = {v = "1"}
"""


def test_comments_and_other_settings_of_toml_stay() -> None:
    text = edited(FILES[".codex/config.toml"], CODEX)
    for line in (
        "# mine",
        "# the best",
        'approval_policy = "never"',
        "[mcp_servers.files]   # keep",
    ):
        assert line in text
    content = tomllib.loads(text)
    assert (content["model"], content["model_provider"]) == ("llama", "ttft-gateway")
    assert content["model_providers"]["ttft-gateway"] == {
        "name": "TTFT Gateway",
        "base_url": "http://127.0.0.1:8080/v1",
        "wire_api": "responses",
        "requires_openai_auth": True,
        "query_params": {"v": "1"},
    }


@pytest.mark.parametrize(("indent", "shown"), [(2, '  "'), (4, '    "'), ("\t", '\t"')])
def test_json_keeps_its_order_and_indentation(indent: Any, shown: str) -> None:
    before = {"theme": "dark", "env": {"Z": "1", "ANTHROPIC_MODEL": "x"}, "hooks": [1, {"a": "ü"}]}
    written = json.dumps(before, indent=indent, ensure_ascii=False)
    text = edited(FILES[".claude/settings.json"], written)
    content = json.loads(text)
    assert list(content) == ["theme", "env", "hooks"]
    assert content["hooks"] == before["hooks"]
    assert (content["env"]["Z"], content["env"]["ANTHROPIC_MODEL"]) == ("1", "llama")
    assert text.splitlines()[1].startswith(shown) and "ü" in text


CONTINUE = """\
name: Mine   # a comment
version: 2.0.0
models:
- name: Claude   # best
  provider: anthropic
  apiKey: "abc"
rules:
- be nice
"""


def test_a_yaml_list_is_kept_and_ours_comes_first() -> None:
    file = FILES[".continue/config.yaml"]
    text = edited(file, CONTINUE)
    assert "# a comment" in text and "# best" in text and 'apiKey: "abc"' in text
    content = yaml.safe_load(text)
    assert [model["name"] for model in content["models"]] == ["TTFT Gateway", "Claude"]
    assert (content["name"], content["version"], content["schema"]) == ("Mine", "2.0.0", "v1")
    assert edited(file, text) == text


def test_our_own_entry_is_changed_where_it_stands() -> None:
    file = FILES[".continue/config.yaml"]
    last = CONTINUE.replace("rules:", "- name: TTFT Gateway\n  model: old\nrules:")
    models = yaml.safe_load(edited(file, last))["models"]
    assert [(model["name"], model.get("model")) for model in models] == [
        ("Claude", None),
        ("TTFT Gateway", "llama"),
    ]


@pytest.mark.parametrize(
    ("form", "text", "reason"),
    [
        ("json", "{\n  // a comment\n  a\n}", "in line 3"),
        ("json", "[1]", "holds no mapping"),
        ("json", "[" * 100_000, "recursion"),
        ("toml", "a = ", "line 1"),
        ("toml", "a = 1\na = 2", "already exists"),
        ("yaml", "a: [1", "while parsing"),
        ("yaml", "- 1", "holds no mapping"),
        ("yaml", "a: 1\na: 2", "while constructing"),
    ],
)
def test_what_cannot_be_read_is_refused(form: Form, text: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        edited(of(form, {"a": "1"}), text)


NAMES = st.text("abcxyz-_", min_size=1, max_size=4)
TREE = st.recursive(
    st.text(max_size=5) | st.integers(-9, 9) | st.booleans(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, TREE), st.dictionaries(NAMES, st.text(min_size=1), min_size=1))
def test_any_json_keeps_what_was_not_named(before: dict[str, Any], values: dict[str, Any]) -> None:
    file = of("json", {"deep": values})
    after = json.loads(edited(file, json.dumps(before)))
    assert after.pop("deep").items() >= values.items()
    before.pop("deep", None)
    assert after == before
