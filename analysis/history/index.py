# SPDX-License-Identifier: GPL-2.0-only
"""Opens the index and fills it from run directories."""

import contextlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.compare.definition import digest
from analysis.compare.pairs import RATES, subject_of
from analysis.reader import Results, load
from fscale.model.errors import FscaleError

TAGS_FILE = "tags.json"
VERSION = 2  # of the tables; an index of another version is made anew, never converted

_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS run (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    started TEXT NOT NULL,
    state TEXT NOT NULL,
    machine TEXT NOT NULL,
    kernel TEXT NOT NULL,
    revision TEXT
);
CREATE TABLE IF NOT EXISTS point (
    run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    subject TEXT NOT NULL,
    workload TEXT NOT NULL,
    filesystem TEXT NOT NULL,
    side TEXT NOT NULL,
    metric TEXT NOT NULL,
    definition TEXT NOT NULL,
    median REAL NOT NULL,
    PRIMARY KEY (run_id, subject, side, metric)
);
CREATE TABLE IF NOT EXISTS tag (
    name TEXT PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE
);
"""


@dataclass(frozen=True)
class IndexedRun:
    """One run directory as the index knows it; `values` counts its medians."""

    id: int
    path: str
    name: str
    started: str
    state: str
    machine: str
    kernel: str
    values: int
    tags: list[str]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the index at `path`, created when it is not there; commits at the end.

    Raises:
        FscaleError: the file is no index, or of another version.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.closing(sqlite3.connect(path)) as index, index:
            index.row_factory = sqlite3.Row
            index.execute("PRAGMA foreign_keys = ON")
            _check(index)
            yield index
    except sqlite3.Error as error:
        raise FscaleError(
            f"{path} cannot be used as the index ({error}); it can be made anew from the results "
            "with `fscale history rebuild`"
        ) from None


def _check(index: sqlite3.Connection) -> None:
    (version,) = index.execute("PRAGMA user_version").fetchone()
    (tables,) = index.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not version and not tables:
        index.executescript(f"{_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
    elif version != VERSION:
        raise sqlite3.DatabaseError(f"its tables are of version {version}, not {VERSION}")


def add(index: sqlite3.Connection, run_dir: Path) -> IndexedRun:
    """Index a run directory, or index it again; its tags come from its `tags.json`.

    Raises:
        FscaleError: it holds no run that can be read.
    """
    run_dir = run_dir.resolve()
    results = load(run_dir)
    run, machine = results.run, results.run.machine
    index.execute("DELETE FROM run WHERE path = ?", [str(run_dir)])
    columns = (run.id, run.started, run.state, machine.identity, machine.kernel, run.revision)
    number = index.execute(
        "INSERT INTO run (path, name, started, state, machine, kernel, revision)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [str(run_dir), *columns],
    ).lastrowid
    index.executemany(
        "INSERT INTO point VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(number, *point) for point in _points(results)],
    )
    for name in read_tags(run_dir):
        index.execute("INSERT OR REPLACE INTO tag VALUES (?, ?)", [name, number])
    (added,) = runs(index, "run.id = ?", number)
    return added


def _points(results: Results) -> Iterator[tuple[str, str, str, str, str, str, float]]:
    """(subject, workload, file system, side, metric, definition, median) of each metric."""
    values: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for cell in results.scored:
        key = cell.key
        meaning = digest(results.run, key.workload, key.filesystem, key.medium)
        place = (subject_of(key).name, key.workload, key.filesystem, key.side or "", meaning)
        for metric, value_of in RATES.items():
            value = value_of(cell)
            if value is not None:
                values[*place, metric].append(value)
    for (subject, workload, filesystem, side, meaning, metric), own in values.items():
        yield subject, workload, filesystem, side, metric, meaning, float(np.median(own))


def rebuild(index: sqlite3.Connection, roots: Iterable[Path]) -> tuple[list[IndexedRun], list[str]]:
    """Empty the index and fill it from all run directories below `roots`.

    Returns:
        The runs, and for each directory that cannot be read a sentence that says why.
    """
    index.execute("DELETE FROM run")
    rows, problems = [], []
    for root in roots:
        for file in sorted(root.rglob("run.json")):
            try:
                rows.append(add(index, file.parent))
            except FscaleError as error:
                problems.append(str(error))
    return rows, problems


def runs(index: sqlite3.Connection, where: str = "true", *values: object) -> list[IndexedRun]:
    """The runs that an SQL condition selects, the oldest first."""
    found = index.execute(
        "SELECT id, path, name, started, state, machine, kernel,"
        ' (SELECT count(*) FROM point WHERE run_id = run.id) AS "values",'
        " (SELECT json_group_array(tag.name) FROM tag WHERE run_id = run.id) AS tags"
        f" FROM run WHERE {where} ORDER BY started, id",
        values,
    )
    return [IndexedRun(**{**row, "tags": sorted(json.loads(row["tags"]))}) for row in found]


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


def tagged(index: sqlite3.Connection, name: str) -> IndexedRun | None:
    """The run that bears a tag; None when there is none."""
    found = runs(index, "id = (SELECT run_id FROM tag WHERE tag.name = ?)", name)
    return found[0] if found else None


def find(index: sqlite3.Connection, name: str) -> IndexedRun:
    """A run by tag, directory or id; the latest of several.

    Raises:
        FscaleError: there is none.
    """
    if run := tagged(index, name):
        return run
    found = runs(index, "name = ? OR path = ?", name, str(Path(name).resolve()))
    if not found:
        raise FscaleError(f"no run {name} in the index; `fscale history list` shows what there is")
    return found[-1]


def tag(index: sqlite3.Connection, run: IndexedRun, name: str) -> None:
    """Give a run a name, taking it from the run that has it; the run directories follow."""
    old = tagged(index, name)
    if old and (directory := Path(old.path)).exists():
        _write_tags(directory, [t for t in read_tags(directory) if t != name])
    directory = Path(run.path)
    _write_tags(directory, sorted({*read_tags(directory), name}))
    index.execute("INSERT OR REPLACE INTO tag VALUES (?, ?)", [name, run.id])


def _write_tags(run_dir: Path, tags: list[str]) -> None:
    path = run_dir / TAGS_FILE
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_text(json.dumps(tags) + "\n")
        temporary.rename(path)
    except OSError as error:
        raise FscaleError(f"cannot write {path}: {error.strerror}") from None
