# SPDX-License-Identifier: GPL-2.0-only
"""The first tables: runs, their points, and tags."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "run",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("path", sa.String, nullable=False, unique=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("started", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("machine", sa.String, nullable=False),
        sa.Column("kernel", sa.String, nullable=False),
        sa.Column("revision", sa.String),
    )
    op.create_index("ix_run_started", "run", ["started"])
    op.create_table(
        "point",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "run_id", sa.Integer, sa.ForeignKey("run.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("workload", sa.String, nullable=False),
        sa.Column("filesystem", sa.String, nullable=False),
        sa.Column("cores", sa.Integer, nullable=False),
        sa.Column("side", sa.String, nullable=False),
        sa.Column("metric", sa.String, nullable=False),
        sa.Column("median", sa.Float, nullable=False),
        sa.Column("repetitions", sa.Integer, nullable=False),
        sa.UniqueConstraint("run_id", "subject", "side", "metric"),
    )
    op.create_index("ix_point_subject", "point", ["subject"])
    op.create_table(
        "tag",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column(
            "run_id", sa.Integer, sa.ForeignKey("run.id", ondelete="CASCADE"), nullable=False
        ),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("tag", "point", "run"):
        op.drop_table(table)
