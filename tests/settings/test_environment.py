from __future__ import annotations

from pathlib import Path

import pytest

from tests.settings.samples import GOOD, OTHER_KEY, changed, faults, loaded

SECTIONS = "server, admin, metrics, traces, timeouts, admission, database_url, valkey_url"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    data = changed(("server", {"port": 1, "host": "localhost"}), ("timeouts", {"idle": 7}))
    env = {
        "GATEWAY_SERVER__PORT": "9000",
        "GATEWAY_TIMEOUTS__FIRST_TOKEN": "1.5",
        "GATEWAY_ADMISSION__QUEUE_LIMIT": "0",
        "GATEWAY_ADMIN__KEY": OTHER_KEY,
        "GATEWAY_DATABASE_URL": "sqlite:///elsewhere.db",
    }
    settings = loaded(tmp_path, data, env)
    assert (settings.server.port, settings.server.host) == (9000, "localhost")
    assert (settings.timeouts.first_token, settings.timeouts.idle) == (1.5, 7)
    assert settings.admission.queue_limit == 0
    assert settings.admin.key is not None
    assert settings.admin.key.get_secret_value() == OTHER_KEY
    assert settings.database_url == "sqlite:///elsewhere.db"


def test_lists_and_whole_sections_are_json(tmp_path: Path) -> None:
    env = {
        "GATEWAY_SERVER": '{"port": 5, "cors_origins": ["http://a"]}',
        "GATEWAY_SERVER__PORT": "7",
    }
    server = loaded(tmp_path, GOOD, env).server
    assert (server.port, server.cors_origins) == (7, ["http://a"])


def test_digits_stay_a_key(tmp_path: Path) -> None:
    digits = "4150926375182930647586019283745610293847"
    key = loaded(tmp_path, GOOD, {"GATEWAY_METRICS__KEY": digits}).metrics.key
    assert key is not None and key.get_secret_value() == digits


@pytest.mark.parametrize(
    "env",
    [
        {"GATEWAY_URL": "http://x", "GATEWAY_KEY": "x", "GATEWAY_ADMIN_KEY": "x"},
        {"GATEWAY_PORT": "tcp://10.0.0.1:80", "GATEWAY_SERVICE_HOST": "10.0.0.1"},
        {"GATEWAY_SERVER__PORT": ""},
        {"SERVER__PORT": "1"},
    ],
)
def test_variables_that_are_not_ours(tmp_path: Path, env: dict[str, str]) -> None:
    assert loaded(tmp_path, GOOD, env) == loaded(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("variable", "value", "fault"),
    [
        (
            "GATEWAY_SERVER__PORT",
            "web",
            "server.port: must be a port, from 1 to 65535, or 0 for any free one "
            "(set by GATEWAY_SERVER__PORT)",
        ),
        (
            "GATEWAY_TIMEOUTS__CONECT",
            "1",
            "timeouts.conect: unknown key, did you mean connect? Allowed here: connect, "
            "first_token, idle, total (set by GATEWAY_TIMEOUTS__CONECT)",
        ),
        (
            "GATEWAY_SERVER__CORS_ORIGINS",
            "http://a",
            'server.cors_origins: must be JSON, such as ["a", "b"] '
            "(set by GATEWAY_SERVER__CORS_ORIGINS)",
        ),
        (
            "GATEWAY_SERVER__CORS_ORIGINS",
            "[" * 5000,
            'server.cors_origins: must be JSON, such as ["a", "b"] '
            "(set by GATEWAY_SERVER__CORS_ORIGINS)",
        ),
        (
            "GATEWAY_SERVER",
            "8080",
            "server: must be a mapping, NAME: value (set by GATEWAY_SERVER)",
        ),
        (
            "GATEWAY_SERVER",
            "port",
            'server: must be JSON, such as {"NAME": "value"} (set by GATEWAY_SERVER)',
        ),
        (
            "GATEWAY_MODELS__X",
            "1",
            f"GATEWAY_MODELS__X: the environment can set only {SECTIONS}",
        ),
        (
            "GATEWAY_SERVER__PORT__X",
            "1",
            "GATEWAY_SERVER__PORT__X: there is nothing below server.port",
        ),
        (
            "GATEWAY_DATABASE_URL__X",
            "1",
            "GATEWAY_DATABASE_URL__X: there is nothing below database_url",
        ),
        (
            "GATEWAY_ADMIN__KEY",
            "hunter2",
            "admin.key: is too short: a key needs at least 128 random bits; make one with: "
            "openssl rand -hex 32 (set by GATEWAY_ADMIN__KEY)",
        ),
    ],
)
def test_a_fault_names_the_variable(tmp_path: Path, variable: str, value: str, fault: str) -> None:
    assert faults(tmp_path, GOOD, {variable: value}) == [fault]
