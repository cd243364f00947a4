"""The tables as they are now; `migrations` says how a database gets there."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Double, Integer, MetaData, String, Table, Text

HEAD = "0001"
"""The revision these tables belong to, so that an up-to-date database needs no Alembic."""

metadata = MetaData()

weight_overrides = Table(
    "weight_overrides",
    metadata,
    Column("model", String(128), primary_key=True),
    Column("arm", String(64), primary_key=True),
    Column("weight", Double, nullable=False),
    Column("baseline", Double, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Double, nullable=False),
)

weight_changes = Table(
    "weight_changes",
    metadata,
    Column("model", String(128), primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("before", JSON, nullable=False),
    Column("after", JSON, nullable=False),
)

backend_switches = Table(
    "backend_switches",
    metadata,
    Column("backend", String(64), primary_key=True),
    Column("enabled", Boolean, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", Double, nullable=False),
)
