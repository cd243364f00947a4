"""Run by Alembic for each migration, over the connection that `gateway.state.migrate` opened."""

from __future__ import annotations

from alembic import context

from gateway.state.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite can change a table only by copying it, which is what a batch does.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
