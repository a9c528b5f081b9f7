# SPDX-License-Identifier: GPL-2.0-only
"""The results directory: run.json, and one file a cell that is whole or not there."""

import json
import os
from pathlib import Path

from pydantic import ValidationError

from fscale.model.bench import Strict
from fscale.model.catalogue import explain
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey, Run

BENCH = "fscale-bench"
"""The microbenchmark's name among the versions of a run; its value is a digest of the file."""


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that after a crash the old or the new content is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _dump(model: Strict) -> str:
    return model.model_dump_json(by_alias=True, indent=1) + "\n"


class Store:
    """Reads and writes `results/<run>/`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def _run(self) -> Path:
        return self.directory / "run.json"

    def cell_path(self, cell_id: str) -> Path:
        """The file of a cell."""
        return self.directory / "cells" / f"{cell_id}.json"

    def profile_dir(self, cell_id: str) -> Path:
        """Where the raw profiles of a cell go."""
        return self.directory / "profiles" / cell_id

    def load_run(self) -> Run | None:
        """The run that is in the directory, if one is."""
        try:
            return Run.model_validate_json(self._run.read_text())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FscaleError(f"{self._run} cannot be read: {error.strerror}") from None
        except ValidationError as error:
            raise FscaleError(f"{self._run} is no run of this fscale: {explain(error)}") from None

    def save_run(self, run: Run) -> None:
        """Write run.json."""
        write_atomic(self._run, _dump(run))

    def save_cell(self, cell: Cell) -> None:
        """Write a cell's file."""
        write_atomic(self.cell_path(cell.id), _dump(cell))

    def load_cell(self, key: CellKey) -> Cell | None:
        """A cell that is there and whole."""
        try:
            return Cell.model_validate_json(self.cell_path(key.id).read_text())
        except (FileNotFoundError, ValidationError):
            return None

    def finished(self, key: CellKey) -> bool:
        """Whether a cell need not be measured again: only a good one, for what was missing may be
        there by now.
        """
        cell = self.load_cell(key)
        return cell is not None and cell.status == "ok"

    def cells(self) -> list[Cell]:
        """All cells of the run."""
        files = sorted((self.directory / "cells").glob("*.json"))
        return [Cell.model_validate_json(file.read_text()) for file in files]


def _lasting(value: object) -> object:
    """Without how often the guest had to be booted, which says nothing about what is measured."""
    if isinstance(value, dict):
        return {name: part for name, part in value.items() if name != "stood_still"}
    return value


def differences(old: Run, new: Run) -> list[str]:
    """What would make cells of one run incomparable, as `what: old -> new`.

    A tool that only one of the two has is no difference: no cell was measured without it.
    """
    found = []
    for what in ("suite", "filesystems", "media"):
        a, b = getattr(old, what), getattr(new, what)
        for key in sorted(a.keys() | b.keys()):
            if a.get(key) != b.get(key):
                found.append(f"{what}.{key}: {json.dumps(a.get(key))} -> {json.dumps(b.get(key))}")
    for what in ("hostname", "kernel", "kernel_cmdline", "cpu_order", "governor", "guest"):
        a, b = (_lasting(getattr(run.machine, what)) for run in (old, new))
        if a != b:
            found.append(f"machine.{what}: {a} -> {b}")
    for name, one, other in (
        ("kernel build", _build(old), _build(new)),
        ("tuning", old.machine.tuning, new.machine.tuning),
        ("revision of fscale", old.revision, new.revision),
        ("seed", old.seed, new.seed),
    ):
        if one != other:
            found.append(f"{name}: {one} -> {other}")
    for name in sorted(old.versions.keys() & new.versions.keys()):
        if name.startswith((BENCH, "mkfs of ")):
            one, other = old.versions[name], new.versions[name]
            if one != other:
                found.append(f"{name}: {one} -> {other}")
    return found


def _build(run: Run) -> str:
    build = run.machine.build
    return f"{build.version} ({build.id})" if build else "unknown"
