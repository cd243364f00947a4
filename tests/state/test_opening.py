"""Opening: a file that can be used is brought up to date quietly, any other is refused clearly."""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import gateway.state.migrate
from gateway.errors import ConfigError
from gateway.state import sqlite
from gateway.state.schema import HEAD, metadata
from gateway.state.store import Store, Switch


def fault(place: object) -> str:
    store = Store(f"sqlite:///{place}")
    with pytest.raises(ConfigError) as caught:
        store.open()
    (said,) = caught.value.faults
    assert said.startswith(f"database_url: {place} cannot be the gateway's database: ")
    with pytest.raises(RuntimeError, match="not open"):
        store.switches()
    return said.partition("database: ")[2]


def raw(file: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(statement).fetchall()


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir()}


def test_files_are_their_owner_s_alone_whatever_the_umask(tmp_path: Path, store: Store) -> None:
    old = os.umask(0)
    try:
        other = Store(f"sqlite:///{tmp_path}/other.db")
        other.open()
        other.switch_backend("x", Switch(False, "me", 1.0))
        assert modes(tmp_path) == {
            f"{name}.db{suffix}": "0o600"
            for name in ("gateway", "other")
            for suffix in ("", "-wal", "-shm")
        }
        other.close()
    finally:
        os.umask(old)


def test_it_is_sqlite_in_wal_mode_and_commits_reach_the_disk(store: Store) -> None:
    with store._transaction() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


def test_the_migrations_lead_to_the_schema(store: Store) -> None:
    with store._transaction(reads=True) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == HEAD


def test_the_head_in_the_schema_is_the_last_migration() -> None:
    config = Config()
    place = Path(gateway.state.migrate.__file__).parent / "migrations"
    config.set_main_option("script_location", str(place))
    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


def test_opening_configures_no_logging(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers), logging.getLogger("gateway").disabled)
    Store(f"sqlite:///{file}").open()
    assert (root.level, list(root.handlers), logging.getLogger("gateway").disabled) == before
    assert capfd.readouterr() == ("", "")


def test_alembic_is_imported_only_where_something_is_to_be_migrated(file: Path) -> None:
    script = (
        "import sys\n"
        "from gateway.state.store import Store\n"
        "store = Store('sqlite:///' + sys.argv[1])\n"
        "store.open()\n"
        "store.close()\n"
        "print('alembic' in sys.modules)\n"
    )
    run = [sys.executable, "-c", script, str(file)]
    said = [
        subprocess.run(run, check=True, timeout=50, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert [one.stdout for one in said] == ["True\n", "False\n"]
    assert [one.stderr for one in said] == ["", ""]


def test_processes_that_start_together_migrate_once(file: Path) -> None:
    script = (
        "import sys\n"
        "from gateway.state.store import Store\n"
        "sys.stdin.readline()\n"
        "Store('sqlite:///' + sys.argv[1]).open()\n"
    )
    run = [sys.executable, "-c", script, str(file)]
    started = [
        subprocess.Popen(run, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in started:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        _, errors = process.communicate(timeout=50)
        assert (process.returncode, errors) == (0, "")


def test_odd_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "50% off äö"
    folder.mkdir()
    monkeypatch.chdir(folder)
    store = Store("sqlite:///relative.db")
    store.open()
    store.close()
    assert (folder / "relative.db").exists()


def test_a_migration_that_fails_leaves_nothing_behind(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("on the way")

    monkeypatch.setattr("alembic.runtime.migration.HeadMaintainer.update_to_step", fail)
    with pytest.raises(RuntimeError, match="on the way"):
        Store(f"sqlite:///{file}").open()
    monkeypatch.undo()
    assert raw(file, "select * from sqlite_master") == []
    store = Store(f"sqlite:///{file}")
    store.open()
    store.close()


def test_a_newer_database_is_refused(store: Store, file: Path) -> None:
    store.switch_backend("x", Switch(False, "me", 1.0))
    with store._transaction() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9999'")
    store.close()
    said = fault(file)
    assert "newer version of the gateway wrote it (schema 9999, this one knows 0001)" in said
    assert "upgrade the gateway" in said
    assert raw(file, "select backend from backend_switches") == [("x",)]  # and left alone


@pytest.mark.parametrize(
    "statements",
    [
        ["create table songs (title text)"],
        ["create table songs (title text)", "create table alembic_version (version_num text)"],
    ],
)
def test_another_program_s_database_is_refused(file: Path, statements: list[str]) -> None:
    for statement in statements:
        raw(file, statement)
    before = raw(file, "select * from sqlite_master")
    assert "another program" in fault(file)
    assert raw(file, "select * from sqlite_master") == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(file: Path) -> None:
    text = "server: {port: 8080}\n" * 100
    file.write_text(text)
    assert "no SQLite database" in fault(file)
    assert file.read_text() == text


def test_a_damaged_database_is_refused(store: Store, file: Path) -> None:
    store.close()
    data = bytearray(file.read_bytes())
    data[100:4096] = b"\xff" * 3996
    file.write_bytes(data)
    assert "damaged" in fault(file)


def test_places_where_no_database_can_be(tmp_path: Path) -> None:
    assert f"no folder {tmp_path}/missing; create it" in fault(f"{tmp_path}/missing/gateway.db")
    assert "not a file" in fault(tmp_path)
    assert "in memory" in fault(":memory:")
    assert "in memory" in fault("")
    assert "in memory" in fault("file::memory:")
    (tmp_path / "plain").write_text("")
    assert "no folder" in fault(f"{tmp_path}/plain/gateway.db")
    os.mkfifo(tmp_path / "fifo")
    assert "not a file" in fault(tmp_path / "fifo")


def test_a_folder_that_cannot_be_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # as root, no folder is closed
    said = fault(file)
    assert said.startswith("it cannot be created (Permission denied)")
    assert str(file.parent) in said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (sqlite3.SQLITE_READONLY, "cannot be written"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, "cannot be written"),
        (sqlite3.SQLITE_CANTOPEN, "cannot be written"),
        (sqlite3.SQLITE_NOTADB, "no SQLite database"),
        (sqlite3.SQLITE_FULL, "database or disk is full"),
    ],
)
def test_errors_are_told_in_the_operator_s_words(code: int, said: str) -> None:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = code
    assert said in sqlite.fault(error)


def test_a_locked_database_is_waited_for_then_refused(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LOCK_TIMEOUT", 0.05)
    with store._transaction():
        assert "another process has kept it locked for 0.05 s" in fault(file)


def test_a_relative_file_is_told_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started in another folder, a gateway has another database."""
    monkeypatch.chdir(tmp_path)
    assert Store("sqlite:///gateway.db").file == tmp_path / "gateway.db"
    assert Store(f"sqlite:///{tmp_path}/other.db").file == tmp_path / "other.db"
