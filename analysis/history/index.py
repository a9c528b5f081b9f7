# SPDX-License-Identifier: GPL-2.0-only
"""Opens the index, brings its schema up to date, and fills it from run directories."""

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import create_engine, delete, event, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from analysis.compare.pairs import RATES, subject_of
from analysis.history.schema import PointRow, RunRow, TagRow
from analysis.reader import Results, load
from fscale.model.errors import FscaleError

MIGRATIONS = Path(__file__).parent / "migrations"
TAGS_FILE = "tags.json"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Session]:
    """A session on the index at `path`, created or migrated first; commits at the end.

    Raises:
        FscaleError: the file is no index, or of a newer fscale.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(f"sqlite:///{path}")
    event.listen(engine, "connect", lambda c, _: c.execute("PRAGMA foreign_keys = ON"))
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        with Session(engine) as session:
            yield session
            session.commit()
    except (DatabaseError, CommandError) as error:
        first = str(error).splitlines()[0]
        raise FscaleError(
            f"{path} cannot be used as the index ({first}); it can be made anew from the results "
            "with `fscale history rebuild`"
        ) from None
    finally:
        engine.dispose()


def add(session: Session, run_dir: Path) -> RunRow:
    """Index a run directory, or index it again; its tags come from its `tags.json`.

    Raises:
        FscaleError: it holds no run that can be read.
    """
    run_dir = run_dir.resolve()
    results = load(run_dir)
    session.execute(delete(RunRow).where(RunRow.path == str(run_dir)))
    run = results.run
    row = RunRow(
        path=str(run_dir),
        name=run.id,
        started=run.started,
        state=run.state,
        machine=run.machine.hostname,
        kernel=run.machine.kernel,
        revision=run.revision,
        points=list(_points(results)),
    )
    session.add(row)
    session.flush()
    for name in read_tags(run_dir):
        session.merge(TagRow(name=name, run_id=row.id))
    return row


def _points(results: Results) -> Iterator[PointRow]:
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    keys = {}
    for cell in results.scored:
        for metric, value_of in RATES.items():
            value = value_of(cell)
            if value is not None:
                place = (subject_of(cell.key).name, cell.key.side or "", metric)
                values[place].append(value)
                keys[place] = cell.key
    for (subject, side, metric), own in values.items():
        key = keys[subject, side, metric]
        yield PointRow(
            subject=subject,
            workload=key.workload,
            filesystem=key.filesystem,
            cores=key.cores,
            side=side,
            metric=metric,
            median=float(np.median(own)),
            repetitions=len(own),
        )


def rebuild(session: Session, roots: Iterable[Path]) -> tuple[list[RunRow], list[str]]:
    """Empty the index and fill it from all run directories below `roots`.

    Returns:
        The runs, and for each directory that cannot be read a sentence that says why.
    """
    session.execute(delete(RunRow))
    rows, problems = [], []
    for root in roots:
        for file in sorted(root.rglob("run.json")):
            try:
                rows.append(add(session, file.parent))
            except FscaleError as error:
                problems.append(str(error))
    return rows, problems


def read_tags(run_dir: Path) -> list[str]:
    """The tags of a run, from its directory: JSON is the truth."""
    try:
        tags = json.loads((run_dir / TAGS_FILE).read_text())
    except FileNotFoundError:
        return []
    except (OSError, json.JSONDecodeError) as error:
        raise FscaleError(f"{run_dir / TAGS_FILE} cannot be read: {error}") from None
    if not isinstance(tags, list) or not all(isinstance(t, str) for t in tags):
        raise FscaleError(f"{run_dir / TAGS_FILE} must be a list of strings")
    return tags


def find(session: Session, name: str) -> RunRow:
    """A run by tag, directory or id; the latest of several.

    Raises:
        FscaleError: there is none.
    """
    tag = session.get(TagRow, name)
    if tag is not None:
        return tag.run
    row = session.scalars(
        select(RunRow)
        .where((RunRow.name == name) | (RunRow.path == str(Path(name).resolve())))
        .order_by(RunRow.started.desc())
    ).first()
    if row is None:
        raise FscaleError(f"no run {name} in the index; `fscale history list` shows what there is")
    return row


def tag(session: Session, run: RunRow, name: str) -> None:
    """Give a run a name, taking it from the run that has it; the run directories follow."""
    old = session.get(TagRow, name)
    if old is not None:
        directory = Path(old.run.path)
        if directory.exists():
            _write_tags(directory, [t for t in read_tags(directory) if t != name])
        session.delete(old)
        session.flush()
    directory = Path(run.path)
    _write_tags(directory, sorted({*read_tags(directory), name}))
    session.add(TagRow(name=name, run_id=run.id))


def _write_tags(run_dir: Path, tags: list[str]) -> None:
    path = run_dir / TAGS_FILE
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_text(json.dumps(tags) + "\n")
        temporary.rename(path)
    except OSError as error:
        raise FscaleError(f"cannot write {path}: {error.strerror}") from None
