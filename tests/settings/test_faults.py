"""The exact words: they are what an operator has to find the fault with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.settings import crosschecks
from gateway.settings.faults import Fault, told
from tests.settings.samples import ABSENT, changed, faults

ARM = "models/llama-3-70b/arms/chunk-512"
NAME = (
    "a name has 1 to 64 characters, letters, digits and . _ -, and begins with a letter or a digit"
)
KEYS_OF_AN_ARM = "weight, role, backends"
TEXT = "must be text: put it in quotes if it looks like a number or like yes and no"
URL = "must be http(s)://host[:port][/prefix], such as http://127.0.0.1:8001"
APIS = "must be auto, or a list of chat, completions, messages, responses, embeddings"
MODEL_NAME = (
    "a model's name has 1 to 128 characters, letters, digits and . _ : / -, and begins with a "
    "letter or a digit"
)
PATTERN = (
    "a model's name or pattern has 1 to 128 characters, letters, digits and . _ : / -, with * "
    "and ? as wildcards"
)
SECRET = (
    "must be printable ASCII without spaces, at most 4096 characters, since it travels in an "
    "HTTP header"
)

CASES: list[tuple[str, Any, str]] = [
    (f"{ARM}/weight", -1, "must be a number from 0 to 1000000"),
    (f"{ARM}/weight", "half", "must be a number from 0 to 1000000"),
    (f"{ARM}/weight", True, "must be a number from 0 to 1000000"),
    (f"{ARM}/weight", 10**400, "must be a number from 0 to 1000000"),
    (f"{ARM}/weight", ABSENT, "is missing: the arm's part of the traffic, such as 50"),
    (f"{ARM}/role", "boss", "must be one of control, canary or baseline"),
    (f"{ARM}/backends", [], "is empty: name at least one"),
    (f"{ARM}/backends", "vllm-a", "must be a list, such as [a, b]"),
    (f"{ARM}/backends", ["vllm-a", "vllm-a"], "names the same thing twice"),
    (
        f"{ARM}/backends",
        ABSENT,
        "is missing: a list of names that are defined under backends",
    ),
    (f"{ARM}/wieght", 1, f"unknown key, did you mean weight? Allowed here: {KEYS_OF_AN_ARM}"),
    (f"{ARM}/zzz", 1, f"unknown key. Allowed here: {KEYS_OF_AN_ARM}"),
    ("models/llama-3-70b/arms", {}, "is empty: name at least one"),
    ("models/llama-3-70b/arms/a b", {"weight": 1, "backends": ["vllm-c"]}, NAME),
    ("models/llama-3-70b/aliases/0", "a b", PATTERN),
    ("models/llama-3-70b/upstream_model", "", "is empty: give a value, or leave the line out"),
    (
        "models/llama-3-70b/upstream_model",
        "a\nb",
        "must be one line of text, without control characters",
    ),
    ("models/llama-3-70b/max_output_tokens", 0, "must be a whole number, at least 1"),
    ("models/llama-3-70b/cross_arm_failover", "maybe", "must be true or false"),
    (
        "models/llama-3-70b/experiment/unit",
        "user",
        "must be one of session, request or key",
    ),
    ("models/llama-3-70b/experiment/slo_ttft_ms", 0, "must be a number above 0"),
    ("models/a@b", {"arms": {"x": {"weight": 1, "backends": ["vllm-c"]}}}, MODEL_NAME),
    ("models/small", 3, "must be a mapping, NAME: value"),
    ("backends/vllm-a/url", ABSENT, "is missing: where the server listens, such as "),
    ("backends/vllm-a/url", "127.0.0.1:8001", URL),
    ("backends/vllm-a/url", "http://a:99999", URL),
    ("backends/vllm-a/url", "http://", URL),
    ("backends/vllm-a/url", 8001, TEXT),
    (
        "backends/vllm-a/url",
        "http://a:8001/v1",
        "must not end with /v1: the gateway adds the API's own path",
    ),
    (
        "backends/vllm-a/url",
        "http://u:p@a:8001",
        "must not hold credentials: the key a backend asks for goes in api_key",
    ),
    (
        "backends/vllm-a/url",
        "http://a?x=1",
        "must end with the host, the port or a path: no ? and no #",
    ),
    ("backends/vllm-a/api_key", "", "is empty: give a value, or leave the line out"),
    ("backends/vllm-a/api_key", "two words", SECRET),
    ("backends/vllm-a/apis", "all", APIS),
    ("backends/vllm-a/apis", ["chat", "chat"], "names the same thing twice"),
    ("backends/vllm-a/max_concurrency", 1.5, "must be a whole number, at least 1"),
    (
        "backends/vllm-a/engine/gpu_memory_utilization",
        90,
        "must be a number above 0 and at most 1",
    ),
    ("backends/vllm-a/engine/prefix_caching", "on it", "must be true or false"),
    ("server/port", 70000, "must be a port, from 1 to 65535, or 0 for any free one"),
    ("server/host", "http://0.0.0.0", "must be a host name or address alone, such as "),
    (
        "server/workers",
        4,
        "must be 1: several processes need shared state, which does not exist yet; run one process",
    ),
    ("server/workers", 0, "must be a whole number, at least 1"),
    ("server/drain_delay", -1, "must be a number, at least 0"),
    (
        "server/cors_origins",
        ["console.example.com"],
        'must be an origin such as https://console.example.com, or "*" for any',
    ),
    (
        "traces/otlp_endpoint",
        "127.0.0.1:4318",
        "must be http(s)://host[:port][/prefix], such as http://127.0.0.1:4318",
    ),
    (
        "traces/otlp_endpoint",
        "http://c:4318/v1/traces/",
        "must not end with /v1/traces: the gateway adds that",
    ),
    (
        "traces/otlp_endpoint",
        "http://u:p@c:4318",
        "must not hold credentials: those a collector asks for go in headers",
    ),
    ("traces/sample_ratio", 1.5, "must be a number from 0 to 1"),
    (
        "traces/headers/authorization",
        "",
        "must be printable ASCII, 1 to 4096 characters, without spaces around it",
    ),
    ("traces/headers/a b", "x", "must be the name of an HTTP header, such as authorization"),
    (
        "valkey_url",
        "redis://127.0.0.1",
        "Valkey is for state shared by several processes, which does not exist yet: leave it out "
        "and run one process",
    ),
    (
        "database_url",
        "postgresql://u:secret@db/gateway",
        "PostgreSQL is for state shared by several processes, which does not exist yet: use "
        "sqlite:///gateway.db and run one process",
    ),
    ("database_url", "mysql://db", "must be sqlite:///FILE, such as sqlite:///gateway.db"),
    (
        "database_url",
        "sqlite:///:memory:",
        "must name a file, such as sqlite:///gateway.db: memory forgets the weights",
    ),
    ("keepalive_interval", float("nan"), "must be a number above 0"),
    ("admission/queue_limit", -1, "must be a whole number, at least 0"),
    ("rollout/steps", [], "is empty: name at least one"),
    ("rollout/steps", [5, 5], "must rise: each step above the one before"),
    ("rollout/steps/0", 101, "must be above 0 and at most 100 percent"),
    ("keys/0/name", ABSENT, "is missing: a name tells keys apart in logs and metrics"),
    ("keys/0/arms", "some", "must be any, none, or a list of arms"),
    ("keys/0/requests_per_minute", 0, "must be a whole number, at least 1"),
    (
        "llama-3-70b",
        {"arms": {}},
        "unknown key; indent it if it belongs to a name above. Allowed here: server, admin, ",
    ),
    ("sever", {}, "unknown key, did you mean server? Allowed here: server, admin, metrics, "),
]


@pytest.mark.parametrize(("path", "value", "text"), CASES)
def test_one_fault(tmp_path: Path, path: str, value: Any, text: str) -> None:
    above = {"rollout/steps/0": [("rollout", {"steps": [1]})]}.get(path, [])
    found = faults(tmp_path, changed(*above, (path, value)))
    # A fault may make another true: an arm that is gone leaves its backends unused, say.
    dotted = path.replace("/", ".").replace(".0", "[0]")
    if isinstance(value, list) and dotted.endswith("cors_origins"):
        dotted += "[0]"
    line = f"{dotted}: {text}"
    assert any(one == line or (text[-1] == " " and one.startswith(line)) for one in found), found


def test_every_fault_at_once_in_the_file_s_order(tmp_path: Path) -> None:
    text = """
server: {port: web, wrokers: 2}
models:
  llama-3-70b:
    arms:
      chunk-512: {weight: -3, backends: [vllm-a, vllm-x]}
      chunk-2048: {weight: ten, backends: [vllm-a]}
backends:
  vllm-a: {url: ftp://x}
keys:
  - {name: dev, key: short}
  - {name: dev, key: "${NOT_SET}"}
valkey_url: redis://x
"""
    assert faults(tmp_path, text) == [
        "server.port: must be a port, from 1 to 65535, or 0 for any free one",
        "server.wrokers: unknown key, did you mean workers? Allowed here: host, port, workers, "
        "max_body_mib, max_header_kib, header_timeout, body_timeout, drain_delay, drain_timeout, "
        "cors_origins",
        "models.llama-3-70b.arms.chunk-512.weight: must be a number from 0 to 1000000",
        "models.llama-3-70b.arms.chunk-512.backends[1]: names no backend; defined under backends: "
        "vllm-a",
        "models.llama-3-70b.arms.chunk-2048.weight: must be a number from 0 to 1000000",
        "models.llama-3-70b.arms.chunk-2048.backends[0]: backend vllm-a serves arm chunk-512 of "
        "llama-3-70b already: a backend belongs to exactly one arm",
        f"backends.vllm-a.url: {URL}",
        "keys[0].key: is too short: a key needs at least 128 random bits; make one with: openssl "
        "rand -hex 32",
        "keys[1].name: keys[0] has this name already",
        "keys[1].key: the environment variable NOT_SET is not set",
        "valkey_url: Valkey is for state shared by several processes, which does not exist yet: "
        "leave it out and run one process",
    ]


def test_a_fault_stays_on_one_line(tmp_path: Path) -> None:
    found = faults(tmp_path, changed(("models/a\nb", 3), ("models/" + "x" * 500, 3)))
    assert all("\n" not in line for line in found)
    assert any(line.startswith("models.a\\nb: ") for line in found)
    assert any(line.startswith("models." + "x" * 128 + "…: ") for line in found)


def test_of_very_many_faults_the_rest_is_counted(tmp_path: Path) -> None:
    wrong = changed(*((f"unknown_{number}", 1) for number in range(100)))
    assert [line.partition(":")[0] for line in faults(tmp_path, wrong)] == [
        f"unknown_{number}" for number in range(100)
    ]
    lines = faults(tmp_path, wrong | {"unknown_100": 1, "unknown_101": 1})
    assert len(lines) == 101 and lines[-1] == "and 2 more faults"


class Walked(dict[str, Any]):
    """Counts the names that walks over it have come to."""

    steps = 0

    def __iter__(self) -> Iterator[str]:
        for name in super().__iter__():
            self.steps += 1
            yield name


NAMES = [f"n{number}" for number in range(500)]


def test_faults_are_put_in_order_by_one_walk() -> None:
    data = Walked(dict.fromkeys(NAMES, 1))
    told((Fault((name,), "is wrong") for name in reversed(NAMES)), data)
    assert data.steps == len(NAMES)


def test_a_list_of_names_is_walked_as_far_as_it_is_told() -> None:
    backends = Walked(dict.fromkeys(NAMES))
    arms = {name: {"backends": [f"no-{name}"]} for name in NAMES}
    found = list(crosschecks.faults({"models": {"m": {"arms": arms}}, "backends": backends}))
    assert sum("n8, n9 and 490 more" in fault.text for fault in found) == len(NAMES)
    assert backends.steps == 10 * len(NAMES)
