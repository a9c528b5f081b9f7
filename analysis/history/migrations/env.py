# SPDX-License-Identifier: GPL-2.0-only
"""Alembic's entry: runs the migrations on the connection that the caller gives."""

from alembic import context

from analysis.history.schema import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite cannot alter a table in place
)
with context.begin_transaction():
    context.run_migrations()
