"""The database as a file: SQLite in WAL mode.

`synchronous=FULL`: rows are rare acts of people and rollouts, so each commit is worth a flush to
the disk. What was committed survives a crash of the process or the machine; what was not is
undone as a whole.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.pool import ConnectionPoolEntry

# Seconds to wait for another process that writes, such as the one this process takes over from.
LOCK_TIMEOUT = 5.0

READS = "gateway_reads"
"""Execution option of transactions that only read, and so need no place to write."""


class UnusableFile(Exception):
    """The file cannot be the gateway's database; says why, and what to do."""


def engine(url: str) -> Engine:
    """An engine for `sqlite:///FILE`; the file is created for its owner alone if it is missing.

    Raises:
        UnusableFile: there can be no database at that place.
    """
    name = make_url(url).database or ""
    if not name or name == ":memory:" or name.startswith("file:"):
        raise UnusableFile("a database in memory forgets; name a file, as in sqlite:///gateway.db")
    _create(Path(name))
    made = create_engine(url, connect_args={"timeout": LOCK_TIMEOUT})
    event.listen(made, "connect", _configure)
    event.listen(made, "begin", _begin)
    return made


def fault(error: Exception) -> str:
    """What an operator should know of an error SQLite gave while the file was opened."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return "it is no SQLite database, or a damaged one; name another file or restore a backup"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another process has kept it locked for {LOCK_TIMEOUT:g} s; stop that process"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return f"it cannot be written, nor files beside it ({error}); see its owner and mode"
    return str(error)


def _create(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise UnusableFile(f"there is no folder {folder}; create it, or name another place")
    try:
        # Before SQLite does, whose own mode follows the umask; -wal and -shm take this one.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if not path.is_file():
            raise UnusableFile("it is not a file; name one") from None
    except OSError as error:
        raise UnusableFile(
            f"it cannot be created ({error.strerror}); see the owner and mode of {folder}"
        ) from None


def _configure(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
    # The driver begins transactions late and in its own way; `_begin` does it for all statements.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _begin(connection: Connection) -> None:
    # At once for writing, unless it only reads: a transaction that reads first could find itself
    # unable to write later.
    reads = connection.get_execution_options().get(READS, False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
