# SPDX-License-Identifier: GPL-2.0-only
"""The results directory: run.json, and one file per cell, which is complete or absent."""

import contextlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from fscale.model import filetest
from fscale.model.bench import Strict
from fscale.model.catalogue import explain
from fscale.model.errors import FscaleError
from fscale.model.files import Folder
from fscale.model.results import Cell, CellKey, CpuControl, Run

RUN_FILE = "run.json"
AB_FILE = "ab.json"
"""the two sides of a comparison"""
MATRIX_FILE = "matrix.json"
"""of `fscale commute`"""
PREDICTIONS_FILE = "predictions.json"
"""of `fscale predict`"""
BENCH = "fscale-bench"
"""Key of the microbenchmark among the versions of a run; the value is a digest of the file."""


def _dump(model: Strict) -> str:
    return model.model_dump_json(by_alias=True, indent=1) + "\n"


def has_conflicts(directory: Path) -> bool:
    """Whether a directory is a result of `fscale commute`, which has no run.json."""
    return filetest.exists(directory / MATRIX_FILE)


def say_no_run(directory: Path) -> str:
    """Why a directory without a run.json cannot be read, and what to give."""
    if has_conflicts(directory):
        return (
            f"{directory} is a result of `fscale commute`, not of a run: `fscale show`, `report`, "
            "`export` and `compare` know it"
        )
    return (
        f"{directory} is not a results directory (it has no run.json); give the directory that "
        "`fscale run --output DIR` wrote"
    )


class Store:
    """Reads and writes `results/<run>/`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._folder = Folder(directory)

    def save(self, name: str, text: str | bytes) -> None:
        """Write a file of the run; after a crash it has either the old or the new content."""
        self._folder.write(name, text, sync=True)

    def texts(self, folder: str) -> list[bytes]:
        """Read all JSON files in a directory of the run."""
        names = self._folder.names(folder, ".json")
        return [self._folder.read(f"{folder}/{name}") for name in names]

    def profile_dir(self, cell_id: str) -> Path:
        """Return the directory for the raw profiles of a cell."""
        return self.directory / "profiles" / cell_id

    def fresh_profile_dir(self, cell_id: str) -> Path:
        """Return the same directory, newly created and empty."""
        return self._folder.fresh(f"profiles/{cell_id}")

    def load_run(self) -> Run | None:
        """Read the run in the directory; None if there is none.

        Raises:
            FscaleError: run.json cannot be read, or is not valid.
        """
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
                f"{self.directory / RUN_FILE} is not a run of this version of fscale: "
                f"{explain(error)}"
            ) from None

    def save_run(self, run: Run) -> None:
        """Write run.json."""
        self.save(RUN_FILE, _dump(run))

    def save_cell(self, cell: Cell) -> None:
        """Write the file of a cell."""
        self.save(f"cells/{cell.id}.json", _dump(cell))

    def load_cell(self, key: CellKey) -> Cell | None:
        """Read a cell; None if its file is missing or not valid."""
        try:
            return Cell.model_validate_json(self._folder.read(f"cells/{key.id}.json"))
        except (OSError, ValidationError):
            return None

    def finished(self, key: CellKey) -> bool:
        """Return whether a cell need not be measured again, which is so only if its status is ok.

        A skipped cell is tried again, because the machine may have by now what it lacked.
        """
        cell = self.load_cell(key)
        return cell is not None and cell.status == "ok"

    def cpu_control(self) -> CpuControl | None:
        """Return how most good cells were restricted to their CPUs; None without a good cell."""
        controls: Counter[CpuControl] = Counter()
        with contextlib.suppress(OSError):
            for name in self._folder.names("cells", ".json"):
                with contextlib.suppress(OSError, ValidationError):
                    cell = Cell.model_validate_json(self._folder.read(f"cells/{name}"))
                    controls[cell.cpu_control] += cell.status == "ok"
        best = controls.most_common(1)
        return best[0][0] if best and best[0][1] else None

    def cells(self) -> list[Cell]:
        """Read all cells of the run."""
        return [Cell.model_validate_json(text) for text in self.texts("cells")]


class Replacing(Store):
    """A results directory whose good cells are measured again, for `reasons` by their ids.

    A good cell replaces the earlier one, whatever its figure, and the earlier one is kept in
    `replaced/`. A cell that failed or was interrupted is not stored.
    """

    def __init__(self, directory: Path, reasons: Mapping[str, str]) -> None:
        super().__init__(directory)
        self._reasons = reasons

    def save_cell(self, cell: Cell) -> None:
        """Replace the earlier cell, if this one is good."""
        if cell.status != "ok":
            return
        if earlier := self.load_cell(cell.key):
            self.save(f"replaced/{cell.id}.json", _dump(earlier))
        cell.replaces = self._reasons[cell.id]
        super().save_cell(cell)
