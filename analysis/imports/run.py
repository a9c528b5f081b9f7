# SPDX-License-Identifier: GPL-2.0-only
"""Makes one run of the files of another program."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fscale import __version__
from fscale.analysis.imports.files import describe_source, read_texts
from fscale.analysis.imports.reading import Reading, make_name
from fscale.analysis.imports.registry import Program
from fscale.analysis.reader import first_error
from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.results import NO_FILESYSTEM, UNKNOWN, Cell, Machine, Run


@dataclass(frozen=True)
class Stated:
    """What the user states because the files do not tell; None: not stated."""

    started: str | None = None
    """ISO 8601"""
    host: str | None = None
    filesystem: str | None = None
    medium: str | None = None


@dataclass(frozen=True)
class Imported:
    """A run and its cells; `left_out` and `notes` as in `Reading`, each sentence once."""

    run: Run
    cells: tuple[Cell, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def read(program: Program, files: Sequence[Path], stated: Stated, output: Path) -> Imported:
    """Read the files of a program as the run that `output` is to have.

    Raises:
        FscaleError: a file is not one of the program, its time is not known, or something is stated
            that the files tell themselves.
    """
    texts = read_texts(files)
    reading = program.read(texts)
    if not reading.cells:
        raise FscaleError(f"{files[0]} has nothing that can be imported: {reading.left_out[0]}")
    cells, loads = _split_options(_place(reading.cells, stated))
    numbered = tuple(_number(cells))
    notes = list(reading.notes)
    machine = _machine(reading.machine, stated)
    if not machine.known:
        notes.append(
            "the files do not name the machine (--host does), so there is no comparison with this "
            "run, and no history"
        )
    if max(Counter(cell.key.point for cell in numbered).values()) == 1:
        notes.append("each point was measured once, so there is no spread")
    started = _started(reading, stated, files[0])
    try:
        run = Run(
            id=output.resolve().name,
            started=started,
            state="complete" if reading.complete else "interrupted",
            fscale_version=__version__,
            revision=None,
            command=[],
            seed=0,
            suite={"name": program.name, **reading.settings},
            filesystems={name: {"title": name} for name in _names(numbered, "filesystem")},
            media={
                name: {"title": name} | reading.media.get(name, {})
                for name in _names(numbered, "medium")
            },
            machine=machine,
            versions=reading.versions,
            workloads=[described.model_dump() for described in reading.workloads],
            planned_cells=max(reading.planned or 0, len(numbered)),
            warnings=notes,
            imported=f"{program.name}'s output {describe_source(texts)}",
            loads=loads,
        )
    except ValidationError as error:
        raise FscaleError(
            f"{files[0]} has a value that is not valid: {first_error(error)}"
        ) from None
    return Imported(run, numbered, tuple(_counted(reading.left_out)), tuple(notes))


def _place(cells: Sequence[Cell], stated: Stated) -> list[Cell]:
    """Enter the stated file system and medium.

    Raises:
        FscaleError: one is not a name, or the files name their own.
    """
    given = {}
    for option, name, value in (
        ("--fs", "filesystem", stated.filesystem),
        ("--media", "medium", stated.medium),
    ):
        if value is None:
            continue
        _refuse_no_name(option, value)
        if own := {getattr(cell.key, name) for cell in cells} - {UNKNOWN}:
            raise FscaleError(f"{option} is not needed: the files name {min(own)} themselves")
        given[name] = value
    return [_change_key(cell, **given) for cell in cells]


def _refuse_no_name(option: str, value: str) -> None:
    if value != make_name(value) or (option, value) == ("--fs", NO_FILESYSTEM):
        raise FscaleError(
            f"{option} {printable(value)!r} is not a name; give letters, digits and . _ + - @"
        )


def _split_options(cells: list[Cell]) -> tuple[list[Cell], dict[str, list[str]]]:
    """Leave the options that vary within a workload in the keys; return the others by workload."""
    seen: dict[str, list[dict[str, str | int]]] = defaultdict(list)
    for cell in cells:
        seen[cell.key.workload].append(cell.key.options)
    common = {
        workload: {k: v for k, v in options[0].items() if all(o.get(k) == v for o in options)}
        for workload, options in seen.items()
    }
    kept = [
        _change_key(
            cell,
            options={
                k: v for k, v in cell.key.options.items() if k not in common[cell.key.workload]
            },
        )
        for cell in cells
    ]
    texts = {
        workload: sorted(f"{name}={value}" for name, value in options.items())
        for workload, options in common.items()
    }
    return kept, {workload: options for workload, options in texts.items() if options}


def _number(cells: Iterable[Cell]) -> Iterable[Cell]:
    """Count the repetitions of each point."""
    count: Counter[str] = Counter()
    for cell in cells:
        count[cell.key.point] += 1
        yield _change_key(cell, repetition=count[cell.key.point])


def _change_key(cell: Cell, **changes: Any) -> Cell:
    key = cell.key.model_copy(update=changes)
    return cell.model_copy(update={"key": key, "id": key.id})


def _names(cells: Iterable[Cell], part: str) -> list[str]:
    return list(dict.fromkeys(getattr(cell.key, part) for cell in cells))


def _machine(machine: Machine, stated: Stated) -> Machine:
    """Enter the stated host; FscaleError if it is not a name, or the files name their own."""
    if stated.host is None:
        return machine
    _refuse_no_name("--host", stated.host)
    if machine.known:
        raise FscaleError(f"--host is not needed: the files name {machine.hostname} themselves")
    return machine.model_copy(update={"hostname": stated.host})


def _started(reading: Reading, stated: Stated, file: Path) -> str:
    """The time of the measurement; FscaleError if it is not known."""
    started = stated.started or reading.started
    if started is None:
        changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
        raise FscaleError(
            f"{file} does not tell when it was measured; add --started, such as --started "
            f"{changed}, its last change"
        )
    try:
        datetime.fromisoformat(started)
    except ValueError:
        raise FscaleError(
            f"--started {printable(started)} is not a time in ISO 8601; give one such as 2016-05-01"
        ) from None
    return started


def _counted(reasons: Iterable[str]) -> Iterable[str]:
    for reason, count in Counter(reasons).items():
        yield reason if count == 1 else f"{reason} ({count} times)"
