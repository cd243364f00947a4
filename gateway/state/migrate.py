"""Bring a database to the schema this version of the gateway knows."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from gateway.state.schema import HEAD

_VERSION = table("alembic_version", column("version_num"))


class UnknownSchema(Exception):
    """The database was not written by this gateway or an earlier one; says what it is."""


def migrate(connection: Connection) -> None:
    """Apply the steps that are missing, all or none, within the connection's transaction.

    Raises:
        UnknownSchema: a newer gateway wrote the database, or another program.
    """
    current = _revision(connection)
    if current != HEAD:
        _upgrade(connection, current)


def _revision(connection: Connection) -> str | None:
    """The revision of the database, None for an empty one."""
    tables = inspect(connection).get_table_names()
    if not tables:
        return None
    revisions: list[str] = []
    if _VERSION.name in tables:
        revisions = list(connection.scalars(select(_VERSION.c.version_num)))
    if len(revisions) != 1:
        raise UnknownSchema("it holds the tables of another program; name a file of its own")
    return revisions[0]


def _upgrade(connection: Connection, current: str | None) -> None:
    # Needed once in a database's life, and 9 MiB of memory: not at every start.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config(attributes={"connection": connection})
    place = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", place.replace("%", "%%"))
    known = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise UnknownSchema(
            f"a newer version of the gateway wrote it (schema {current}, this one knows {HEAD}); "
            "upgrade the gateway, or name another file"
        )
    command.upgrade(config, "head")
