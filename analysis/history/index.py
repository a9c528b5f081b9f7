# SPDX-License-Identifier: GPL-2.0-only
"""Opens the index and fills it from run directories."""

import contextlib
import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fscale.analysis.compare.definition import digest, meaning
from fscale.analysis.compare.model import Subject
from fscale.analysis.compare.pairs import subject_of
from fscale.analysis.metrics import VALUES
from fscale.analysis.reader import Results, load
from fscale.analysis.summary import Spread
from fscale.model import crew
from fscale.model.errors import FscaleError
from fscale.model.files import Folder, parse_json
from fscale.model.results import Cell

TAGS_FILE = "tags.json"
LONGEST_TAG = 100  # characters
_MAGIC = b"SQLite format 3\0"
# Of the tables and their metrics; an index of another version is rebuilt, never converted.
VERSION = 5

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
    build TEXT NOT NULL,
    revision TEXT
);
CREATE TABLE IF NOT EXISTS point (
    run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    subject TEXT NOT NULL,
    workload TEXT NOT NULL,
    filesystem TEXT NOT NULL,
    place TEXT NOT NULL,
    cores INTEGER NOT NULL,
    side TEXT NOT NULL,
    metric TEXT NOT NULL,
    definition TEXT NOT NULL,
    unit TEXT NOT NULL,
    median REAL NOT NULL,
    low REAL NOT NULL,
    high REAL NOT NULL,
    n INTEGER NOT NULL,
    disturbed INTEGER NOT NULL,
    PRIMARY KEY (run_id, subject, side, metric)
);
CREATE TABLE IF NOT EXISTS definition (
    digest TEXT PRIMARY KEY,
    facts TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS tag (
    name TEXT PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE
);
"""


@dataclass(frozen=True)
class IndexedRun:
    """One run directory in the index; `values` is the number of its medians."""

    id: int
    path: str
    name: str
    started: str
    state: str
    machine: str
    kernel: str
    values: int
    tags: list[str]
    refused: tuple[str, ...] = ()
    """tags that its directory claims but another run has"""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the index at `path`, created if absent; commits at the end.

    Raises:
        FscaleError: the file is not an index, or has another version.
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
            f"{path} cannot be used as the index ({error}); rebuild it from the results with "
            "`fscale history rebuild`"
        ) from None


def _check(index: sqlite3.Connection) -> None:
    (version,) = index.execute("PRAGMA user_version").fetchone()
    (tables,) = index.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not version and not tables:
        index.executescript(f"{_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
    elif version != VERSION:
        raise sqlite3.DatabaseError(f"its tables have version {version}, not {VERSION}")


def replaceable(path: Path) -> bool:
    """Whether the file at `path` may be overwritten by a new index without other loss.

    That is so if there is no file, if it is empty, if it is a database with the tables of an index
    of any version, or if it is too damaged to read its list of tables.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except OSError:
        return True  # opening it will report the reason
    if head != _MAGIC:
        return not head
    try:
        with contextlib.closing(sqlite3.connect(path)) as index:
            tables = {name for (name,) in index.execute("SELECT name FROM sqlite_master")}
    except sqlite3.Error:
        return True
    return not tables or {"run", "point", "tag"} <= tables


def add(index: sqlite3.Connection, run_dir: Path) -> IndexedRun:
    """Index a run directory, or update it; its tags come from its `tags.json`.

    A tag that another run has stays with that run: only `tag` moves tags.

    Raises:
        FscaleError: it contains no readable run, or a run that does not name its machine.
    """
    number, claimed = _insert(index, run_dir)
    for name in claimed:
        index.execute("INSERT OR IGNORE INTO tag VALUES (?, ?)", [name, number])
    (added,) = runs(index, "run.id = ?", number)
    return replace(added, refused=tuple(sorted(set(claimed) - set(added.tags))))


def _insert(index: sqlite3.Connection, run_dir: Path) -> tuple[int | None, list[str]]:
    """Index a run without its tags; returns its number and the tags that it claims."""
    run_dir = run_dir.resolve()
    if not str(run_dir).isprintable():
        raise FscaleError(f"{run_dir} has unprintable characters in its name; rename it")
    claimed = read_tags(run_dir)
    results = load(run_dir)
    run, machine = results.run, results.run.machine
    if not machine.known:
        raise FscaleError(
            f"{run_dir} does not name its machine, and a history has figures of one machine only; "
            "import it again with --host NAME"
        )
    index.execute("DELETE FROM run WHERE path = ?", [str(run_dir)])
    build = machine.build.version if machine.build else ""
    columns = (run.id, run.started, run.state_shown, machine.identity, machine.kernel, build)
    number = index.execute(
        "INSERT INTO run (path, name, started, state, machine, kernel, build, revision)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [str(run_dir), *columns, run.revision],
    ).lastrowid
    places = {(c.key.workload, c.key.filesystem, c.key.medium) for c in results.scored}
    facts = {place: meaning(run, *place) for place in places}
    digests = {place: digest(facts[place]) for place in places}
    index.executemany(
        "INSERT OR IGNORE INTO definition VALUES (?, ?)",
        [(digests[place], json.dumps(facts[place])) for place in places],
    )
    index.executemany(
        f"INSERT INTO point VALUES ({', '.join('?' * 15)})",
        [(number, *point) for point in _points(results, digests)],
    )
    return number, claimed


def _points(
    results: Results, digests: Mapping[tuple[str, str, str], str]
) -> Iterator[tuple[object, ...]]:
    """The columns of table `point` after the run's number, for each metric of each point."""
    cells: dict[tuple[Subject, str], list[Cell]] = defaultdict(list)
    for cell in results.scored:
        cells[subject_of(cell.key), cell.key.side or ""].append(cell)
    # The subject has the number of workers, because a sweep has several.
    rest = crew.words(results.run, (crew.PLACEMENT, crew.KEEP_FREE))
    for (subject, side), group in cells.items():
        definition = digests[subject.workload, subject.filesystem, subject.medium]
        place = " ".join(filter(None, [subject.circumstances, rest]))
        where = (subject.workload, subject.filesystem, place, *subject.cores)
        for metric, value_of in VALUES.items():
            taken = [(cell, value_of(cell)) for cell in group]
            known = [(cell, v) for cell, v in taken if v is not None and 0 < v < math.inf]
            # Slow repetitions are those that lack a value, so the others do not stand for them.
            if len(known) == len(group):
                values = np.array([value for _, value in known])
                spread = Spread.of(values)
                figures = (float(np.median(values)), spread.low, spread.high, len(known))
                disturbed = sum(cell.disturbed is not None for cell, _ in known)
                name = " ".join(filter(None, [subject.name, rest]))
                yield name, *where, side, metric, definition, group[0].unit, *figures, disturbed


def definitions(index: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """The facts of each definition (`fscale.analysis.compare.definition.meaning`), by digest."""
    return {name: json.loads(facts) for name, facts in index.execute("SELECT * FROM definition")}


def owners(path: Path) -> dict[str, str]:
    """Tag -> directory of its run in the index at `path`; empty if it cannot be read."""
    if not path.is_file():
        return {}
    try:
        with opened(path) as index:
            return {name: run.path for run in runs(index) for name in run.tags}
    except FscaleError:
        return {}


def rebuild(
    index: sqlite3.Connection, roots: Iterable[Path], owned: Mapping[str, str]
) -> tuple[list[IndexedRun], list[str]]:
    """Empty the index and fill it from all run directories below `roots`.

    A tag goes to the run that had it (`owned`: tag -> directory), or to the only run that claims
    it.

    Returns:
        The runs, and a sentence for each unreadable directory and each tag that is left out.
    """
    index.execute("DELETE FROM run")
    claims: dict[str, dict[str, int | None]] = defaultdict(dict)
    problems = []
    for root in roots:
        for file in sorted(root.rglob("run.json")):
            try:
                number, claimed = _insert(index, file.parent)
            except FscaleError as error:
                problems.append(str(error))
                continue
            for name in claimed:
                claims[name][str(file.parent.resolve())] = number
    for name, claimants in claims.items():
        owner = owned.get(name) or (next(iter(claimants)) if len(claimants) == 1 else None)
        if owner in claimants:
            index.execute("INSERT INTO tag VALUES (?, ?)", [name, claimants[owner]])
        others = [path for path in claimants if path != owner]
        if others:
            problems.append(
                f"tag {name} of {', '.join(others)} is left out because "
                f"{f'it belongs to {owner}' if owner else 'several runs claim it'}; assign it with "
                f"`fscale history tag DIR {name}`"
            )
    return runs(index), problems


def runs(index: sqlite3.Connection, where: str = "true", *values: object) -> list[IndexedRun]:
    """The runs that an SQL condition selects, the oldest first."""
    rows = index.execute(
        "SELECT id, path, name, started, state, machine, kernel,"
        ' (SELECT count(*) FROM point WHERE run_id = run.id) AS "values",'
        " (SELECT json_group_array(tag.name) FROM tag WHERE run_id = run.id) AS tags"
        f" FROM run WHERE {where} ORDER BY started, id",
        values,
    )
    return [IndexedRun(**{**row, "tags": sorted(json.loads(row["tags"]))}) for row in rows]


def read_tags(run_dir: Path) -> list[str]:
    """The tags of a run from its directory, whose tags.json is authoritative."""
    try:
        tags = parse_json(Folder(run_dir).read(TAGS_FILE))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FscaleError(f"{run_dir / TAGS_FILE} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FscaleError(f"{run_dir / TAGS_FILE} cannot be read: {error}") from None
    if not isinstance(tags, list) or not all(isinstance(t, str) and is_tag(t) for t in tags):
        raise FscaleError(
            f"{run_dir / TAGS_FILE} is not a list of tags (at most {LONGEST_TAG} printable "
            "characters each, without a slash); correct or delete it"
        )
    return tags


def is_tag(name: str) -> bool:
    """Whether a text is a valid tag: printable, without a slash, not too long."""
    return 0 < len(name) <= LONGEST_TAG and name.isprintable() and "/" not in name


def tagged(index: sqlite3.Connection, name: str) -> IndexedRun | None:
    """The run with a tag; None if there is none."""
    tagged_runs = runs(index, "id = (SELECT run_id FROM tag WHERE tag.name = ?)", name)
    return tagged_runs[0] if tagged_runs else None


def find(index: sqlite3.Connection, name: str) -> IndexedRun:
    """A run by tag, directory or id.

    Raises:
        FscaleError: there is none, or several runs have the id, which comes from `run.json`.
    """
    if run := tagged(index, name):
        return run
    matches = runs(index, "path = ?", str(Path(name).resolve())) or runs(index, "name = ?", name)
    if not matches:
        raise FscaleError(f"the index has no run {name}; `fscale history list` shows all runs")
    if len(matches) > 1:
        raise FscaleError(
            f"several runs have the id {name}: {', '.join(run.path for run in matches)}; give the "
            "directory of one"
        )
    return matches[0]


def tag(index: sqlite3.Connection, run: IndexedRun, name: str) -> None:
    """Tag a run and remove the tag from the run that had it; also update their directories."""
    old = tagged(index, name)
    if old and (directory := Path(old.path)).exists():
        _write_tags(directory, [t for t in read_tags(directory) if t != name])
    directory = Path(run.path)
    _write_tags(directory, sorted({*read_tags(directory), name}))
    index.execute("INSERT OR REPLACE INTO tag VALUES (?, ?)", [name, run.id])


def _write_tags(run_dir: Path, tags: list[str]) -> None:
    try:
        Folder(run_dir).write(TAGS_FILE, json.dumps(tags) + "\n")
    except OSError as error:
        raise FscaleError(f"cannot write {run_dir / TAGS_FILE}: {error.strerror}") from None
