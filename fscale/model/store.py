# SPDX-License-Identifier: GPL-2.0-only
"""The results directory: run.json, and one file a cell that is whole or not there."""

import contextlib
from collections import Counter
from pathlib import Path

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
