# SPDX-License-Identifier: GPL-2.0-only
"""The results directory: run.json, and one file a cell that is whole or not there."""

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fscale.model.bench import Strict
from fscale.model.catalogue import explain
from fscale.model.errors import FscaleError
from fscale.model.files import Folder
from fscale.model.results import Cell, CellKey, Control, Run

RUN_FILE = "run.json"
BENCH = "fscale-bench"
"""The microbenchmark's name among the versions of a run; its value is a digest of the file."""


def _dump(model: Strict) -> str:
    return model.model_dump_json(by_alias=True, indent=1) + "\n"


class Store:
    """Reads and writes `results/<run>/`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._folder = Folder(directory)

    def save(self, name: str, text: str) -> None:
        """Write a file of the run; after a crash the old or the new content is there."""
        self._folder.write(name, text, sync=True)

    def profile_dir(self, cell_id: str) -> Path:
        """Where the raw profiles of a cell go."""
        return self.directory / "profiles" / cell_id

    def fresh_profile_dir(self, cell_id: str) -> Path:
        """The same, made anew and empty."""
        return self._folder.fresh(f"profiles/{cell_id}")

    def load_run(self) -> Run | None:
        """The run that is in the directory, if one is."""
        try:
            return Run.model_validate_json(self._folder.read(RUN_FILE))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FscaleError(
                f"{self.directory / RUN_FILE} cannot be read: {error.strerror}"
            ) from None
        except ValidationError as error:
            raise FscaleError(
                f"{self.directory / RUN_FILE} is no run of this fscale: {explain(error)}"
            ) from None

    def save_run(self, run: Run) -> None:
        """Write run.json."""
        self.save(RUN_FILE, _dump(run))

    def save_cell(self, cell: Cell) -> None:
        """Write a cell's file."""
        self.save(f"cells/{cell.id}.json", _dump(cell))

    def load_cell(self, key: CellKey) -> Cell | None:
        """A cell that is there and whole."""
        try:
            return Cell.model_validate_json(self._folder.read(f"cells/{key.id}.json"))
        except (OSError, ValidationError):
            return None

    def finished(self, key: CellKey) -> bool:
        """Whether a cell need not be measured again: only a good one, for what was missing may be
        there by now.
        """
        cell = self.load_cell(key)
        return cell is not None and cell.status == "ok"

    def control(self) -> Control | None:
        """How most of the good cells kept to their CPUs; None where there is no good cell."""
        found: Counter[Control] = Counter()
        with contextlib.suppress(OSError):
            for name in self._folder.names("cells", ".json"):
                with contextlib.suppress(OSError, ValidationError):
                    cell = Cell.model_validate_json(self._folder.read(f"cells/{name}"))
                    found[cell.cpu_control] += cell.status == "ok"
        best = found.most_common(1)
        return best[0][0] if best and best[0][1] else None

    def cells(self) -> list[Cell]:
        """All cells of the run."""
        return [
            Cell.model_validate_json(self._folder.read(f"cells/{name}"))
            for name in self._folder.names("cells", ".json")
        ]


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
                found.append(f"{what}.{_changed(key, a.get(key), b.get(key))}")
    for what in ("hostname", "kernel", "kernel_cmdline", "cpu_order", "governor", "guest"):
        a, b = (_lasting(getattr(run.machine, what)) for run in (old, new))
        if a != b:
            found.append(f"machine.{what}: {a} -> {b}")
    for name, one, other in (
        ("kernel build", _build(old), _build(new)),
        *_tuning(old, new),
        ("limits of the control group", _limits(old), _limits(new)),
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


def _tuning(old: Run, new: Run) -> list[tuple[str, object, object]]:
    """The settings of the machine that both sides have, each with its two values."""
    ours, theirs = old.machine.tuning, new.machine.tuning
    if ours is None or theirs is None:
        return [("tuning", ours, theirs)]
    a, b = ours.flat, theirs.flat
    return [(f"tuning.{name}", a[name], b[name]) for name in sorted(a.keys() & b.keys())]


def _limits(run: Run) -> object:
    return run.machine.confinement.limits if run.machine.confinement else None


def _changed(key: str, old: Any, new: Any) -> str:
    """`KEY: OLD -> NEW`, of a list of options and of a description only what is not the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        parts = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
        return "; ".join(_changed(f"{key}.{p}", old.get(p), new.get(p)) for p in parts)
    if key.endswith("mount_options") and isinstance(old, list) and isinstance(new, list):
        old, new = [o for o in old if o not in new], [o for o in new if o not in old]
    return f"{key}: {json.dumps(old)} -> {json.dumps(new)}"


def _build(run: Run) -> str:
    build = run.machine.build
    return f"{build.version} ({build.id})" if build else "unknown"
