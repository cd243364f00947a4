"""The durable state, as the few questions the gateway asks of it.

All calls block on the disk for some milliseconds; asynchronous callers use a thread. They are
safe from several threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from sqlalchemy import Connection, Engine, delete, func, insert, make_url, select, tuple_
from sqlalchemy.exc import DBAPIError, IntegrityError

from gateway.errors import ConfigError, GatewayError
from gateway.state import sqlite
from gateway.state.migrate import UnknownSchema, migrate
from gateway.state.schema import backend_switches, weight_changes, weight_overrides

HISTORY = 10_000
"""Changes kept for each model."""

NOT_STORED = (
    "The gateway's database cannot be used now, so nothing was changed: see that its disk has "
    "room and its file can be written, then try again."
)


class RevisionTaken(Exception):
    """Another process that uses the database stored a change of this revision before."""


class StateFailed(GatewayError):
    """The database could not be read or written."""

    status = 503


class Override(msgspec.Struct, frozen=True):
    """A weight that was set while the gateway ran, and the file's weight it stands in for.

    Attributes:
        revision: of the change that set it.
        at: wall-clock seconds since the epoch.
    """

    weight: float
    baseline: float
    revision: int
    by: str
    reason: str
    at: float


class WeightChange(msgspec.Struct, frozen=True):
    """One change of a model's weights in force; `at` in wall-clock seconds since the epoch."""

    model: str
    revision: int
    at: float
    by: str
    reason: str
    before: dict[str, float]
    after: dict[str, float]


class WeightUpdate(msgspec.Struct, frozen=True):
    """What to store of one model: all its overrides, and the change of its weights, if any."""

    model: str
    overrides: dict[str, Override]
    change: WeightChange | None


class Switch(msgspec.Struct, frozen=True):
    """Whether the operator lets a backend serve; `at` in wall-clock seconds since the epoch."""

    enabled: bool
    by: str
    at: float


class Store:
    """The gateway's database.

    Args:
        url: `sqlite:///FILE`, as the settings allow it.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._engine: Engine | None = None

    @property
    def file(self) -> Path:
        """Its place, whatever the working directory."""
        return Path(make_url(self._url).database or "").absolute()

    def open(self) -> None:
        """Connect, and bring the schema up to date.

        Raises:
            ConfigError: the file cannot be written, is no database, or a newer one's.
        """
        try:
            self._engine = sqlite.engine(self._url)
            with self._engine.begin() as connection:
                migrate(connection)
        except (UnknownSchema, sqlite.UnusableFile) as error:
            self.close()
            raise self._unusable(str(error)) from None
        except DBAPIError as error:
            self.close()
            raise self._unusable(sqlite.fault(error.orig or error)) from error

    def close(self) -> None:
        """Let go of the file; does nothing if it is not open."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def overrides(self) -> dict[str, dict[str, Override]]:
        """The weights set by hand that are in force, by model and arm."""
        found: dict[str, dict[str, Override]] = {}
        with self._transaction(reads=True) as connection:
            for row in connection.execute(select(weight_overrides)).mappings():
                fields = dict(row)
                model, arm = fields.pop("model"), fields.pop("arm")
                found.setdefault(model, {})[arm] = Override(**fields)
        return found

    def latest_changes(self) -> dict[str, WeightChange]:
        """The last change of each model's weights: its revision, and what they are since."""
        newest = select(weight_changes.c.model, func.max(weight_changes.c.revision)).group_by(
            weight_changes.c.model
        )
        identity = tuple_(weight_changes.c.model, weight_changes.c.revision)
        with self._transaction(reads=True) as connection:
            rows = connection.execute(select(weight_changes).where(identity.in_(newest)))
            return {row["model"]: WeightChange(**row) for row in rows.mappings()}

    def history(self, model: str | None = None, limit: int = 100) -> list[WeightChange]:
        """Changes of one model's weights, or of all models', the newest first."""
        newest = weight_changes.c.revision.desc()
        if model is None:
            query = select(weight_changes).order_by(weight_changes.c.at.desc(), newest)
        else:  # in order even where the wall clock was set back
            query = select(weight_changes).where(weight_changes.c.model == model).order_by(newest)
        with self._transaction(reads=True) as connection:
            rows = connection.execute(query.limit(limit)).mappings()
            return [WeightChange(**row) for row in rows]

    def save_weights(self, updates: Iterable[WeightUpdate]) -> None:
        """Put overrides in the place of those stored and add to the history, all or nothing.

        Raises:
            RevisionTaken: another process stored a change of the same revision.
        """
        try:
            with self._transaction() as connection:
                for update in updates:
                    _save(connection, update)
        except IntegrityError as error:
            raise RevisionTaken from error

    def disabled_backends(self) -> set[str]:
        """Names of the backends that the operator has taken out."""
        return {name for name, switch in self.switches().items() if not switch.enabled}

    def switches(self) -> dict[str, Switch]:
        """What the operator last said of backends, by name."""
        with self._transaction(reads=True) as connection:
            rows = connection.execute(select(backend_switches)).mappings()
            return {row["backend"]: Switch(row["enabled"], row["by"], row["at"]) for row in rows}

    def switch_backend(self, backend: str, switch: Switch) -> None:
        """Remember that a backend was taken out, or put back."""
        with self._transaction() as connection:
            connection.execute(
                delete(backend_switches).where(backend_switches.c.backend == backend)
            )
            values = {"backend": backend, **msgspec.structs.asdict(switch)}
            connection.execute(insert(backend_switches).values(values))

    @contextmanager
    def _transaction(self, *, reads: bool = False) -> Iterator[Connection]:
        """A transaction, committed at the end.

        Raises:
            StateFailed: the database could not be read or written; nothing was changed.
        """
        if self._engine is None:
            raise RuntimeError("the store is not open")
        try:
            with self._engine.execution_options(**{sqlite.READS: reads}).begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise StateFailed(NOT_STORED, detail=str(error.orig)) from error

    def _unusable(self, why: str) -> ConfigError:
        file = self._url.removeprefix("sqlite:///")
        return ConfigError([f"database_url: {file} cannot be the gateway's database: {why}"])


def _save(connection: Connection, update: WeightUpdate) -> None:
    connection.execute(delete(weight_overrides).where(weight_overrides.c.model == update.model))
    rows = [
        {"model": update.model, "arm": arm, **msgspec.structs.asdict(override)}
        for arm, override in update.overrides.items()
    ]
    if rows:
        connection.execute(insert(weight_overrides), rows)
    if update.change is None:
        return
    connection.execute(insert(weight_changes).values(msgspec.structs.asdict(update.change)))
    connection.execute(
        delete(weight_changes).where(
            weight_changes.c.model == update.model,
            weight_changes.c.revision <= update.change.revision - HISTORY,
        )
    )
