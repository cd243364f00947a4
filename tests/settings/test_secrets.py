"""A secret goes nowhere but to where it is asked for, wherever it was put by mistake."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gateway.errors import ConfigError
from gateway.settings import load
from tests.settings.samples import KEY, OTHER_KEY, changed
from tests.settings.test_loading import ENV, EXAMPLE

MARKER = "MARKER"
SECRET = f"sk-{MARKER}-q8ZtR2wLx5Nc7Bd"
KEPT = changed(
    ("admin", {"key": OTHER_KEY, "read_key": "d41f8cb98f0020e4998ecf8427e21b35"}),
    ("metrics", {"key": "a2c4e6f80b1d3f5a7c9e0b2d4f6a8c13"}),
    ("traces", {"otlp_endpoint": "http://c:4318", "headers": {"authorization": "Basic x"}}),
    ("server", {"port": 8080, "cors_origins": ["http://a"]}),
    ("models/llama-3-70b/experiment", {"name": "x", "unit": "session"}),
    ("backends/vllm-a/engine", {"max_num_seqs": 8}),
    ("backends/vllm-b/apis", ["chat"]),
    ("keys/0/models", ["small"]),
    ("keys/0/arms", ["only"]),
    ("rollout", {"steps": [1, 5]}),
    ("database_url", "sqlite:///gateway.db"),
)
HOW = ["value", "unknown key", "list", "mapping", "reference", "longer", "broken"]


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for name, value in items:
            found += places(value, (*path, name))
    return found


def misplaced(place: tuple[Any, ...], how: str) -> str:
    """The configuration with the secret at a place where it does not belong."""
    data = json.loads(json.dumps(KEPT))
    value: Any = {
        "value": SECRET,
        "list": [SECRET],
        "mapping": {"key": SECRET},
        "reference": f"${{{SECRET}}}",
        "longer": f"http://user:{SECRET}@host:8001/v1?{SECRET}",
        "broken": f"${{file:secret.txt}} {SECRET}",
    }.get(how)
    *above, last = place
    at = data
    for part in above:
        at = at[part]
    if how == "unknown key":
        at = at[last] if isinstance(at[last], dict) else at
        if isinstance(at, dict):
            at[SECRET + SECRET] = 1
    else:
        at[last] = value
    return json.dumps(data)


def said(path: Path, caplog: pytest.LogCaptureFixture) -> str:
    """All that can be seen of loading a file: faults, tracebacks, reprs and the log."""
    try:
        settings = load(path, {})
    except ConfigError as error:
        return "".join([*error.faults, repr(error), *traceback.format_exception(error)])
    secret = [settings.admin, settings.metrics, settings.keys]
    secret += [backend.api_key for backend in settings.backends.values()]
    return f"{secret!r} {secret} {caplog.text}"


def names_something(place: tuple[Any, ...], how: str) -> bool:
    """Names of keys, models, arms and backends are shown wherever these are spoken of."""
    if how == "unknown key":
        return place[-1] in ("models", "arms", "backends")
    return place[0] == "keys" and place[-1] in ("name", "models", "arms")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("place", places(KEPT)[1:], ids=lambda place: ".".join(map(str, place)))
def test_a_secret_at_any_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, place: tuple[Any, ...], how: str
) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "secret.txt").write_text(SECRET)
    path = tmp_path / "gateway.yaml"
    path.write_text(misplaced(place, how))
    assert MARKER not in said(path, caplog) or names_something(place, how)


@given(place=st.integers(0, len(EXAMPLE)), length=st.integers(0, 40), quoted=st.booleans())
@hypothesis_settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_secret_pasted_into_the_text_anywhere(
    tmp_path: Path, place: int, length: int, quoted: bool
) -> None:
    """It replaces a stretch of the file; whatever that breaks, `load` refuses it with faults."""
    pasted = f'"{SECRET}"' if quoted else SECRET
    path = tmp_path / "gateway.yaml"
    path.write_text(EXAMPLE[:place] + pasted + EXAMPLE[place + length :])
    try:
        settings = load(path, ENV)
    except ConfigError as error:
        lines = error.faults
    else:
        lines = [repr(settings.keys), repr(settings.admin), repr(settings.metrics)]
    # Pasted into a name it is one, and a fault has to say which: in its path, and in the list of
    # names to choose from. Nothing else repeats it.
    sentences = [line.partition(": ")[2].partition("; defined ")[0] for line in lines]
    assert not any(SECRET in sentence for sentence in sentences)


@given(st.binary(max_size=60), st.integers(0, len(EXAMPLE)))
@hypothesis_settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_bytes_make_it_fail_otherwise_than_by_faults(
    tmp_path: Path, junk: bytes, place: int
) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_bytes(EXAMPLE[:place].encode() + junk + EXAMPLE[place:].encode())
    try:
        load(path, ENV)
    except ConfigError as error:
        assert error.faults


def test_a_good_configuration_shows_none_of_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(EXAMPLE)
    settings = load(path, {**ENV, "VLLM_A_KEY": SECRET})
    for text in (repr(settings), str(settings), settings.model_dump_json(), f"{settings.keys}"):
        for secret in (SECRET, KEY, ENV["GATEWAY_ADMIN_KEY"]):
            assert secret not in text
