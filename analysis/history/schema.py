# SPDX-License-Identifier: GPL-2.0-only
"""The tables of the index. They change only by a migration (`migrations/versions`)."""

from sqlalchemy import Float, ForeignKey, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    """Of all tables."""


class RunRow(Base):
    """One run directory."""

    __tablename__ = "run"

    id: Mapped[int] = mapped_column(primary_key=True)
    path: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    started: Mapped[str] = mapped_column(index=True)
    state: Mapped[str]
    machine: Mapped[str]
    kernel: Mapped[str]
    revision: Mapped[str | None]
    points: Mapped[list["PointRow"]] = relationship(
        back_populates="run", cascade="all, delete-orphan", passive_deletes=True
    )
    tags: Mapped[list["TagRow"]] = relationship(
        back_populates="run", cascade="all, delete-orphan", passive_deletes=True
    )


class PointRow(Base):
    """One metric of one point of a run: the median over its repetitions."""

    __tablename__ = "point"
    __table_args__ = (UniqueConstraint("run_id", "subject", "side", "metric"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    subject: Mapped[str] = mapped_column(index=True)
    workload: Mapped[str]
    filesystem: Mapped[str]
    cores: Mapped[int]
    side: Mapped[str]
    metric: Mapped[str]
    median: Mapped[float] = mapped_column(Float)
    repetitions: Mapped[int]
    run: Mapped[RunRow] = relationship(back_populates="points")


class TagRow(Base):
    """A name that a user gave to a run. It lives beside the run, in `tags.json`, too."""

    __tablename__ = "tag"

    name: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    run: Mapped[RunRow] = relationship(back_populates="tags")
