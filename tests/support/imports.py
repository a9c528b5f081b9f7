# SPDX-License-Identifier: GPL-2.0-only
"""Files of other programs, and runs that are made of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fscale.analysis.imports import run
from fscale.analysis.imports.registry import every
from fscale.analysis.imports.run import Imported, Stated
from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.results import Cell

FILES = paths.ROOT / "tests/fixtures/imports"
PROGRAMS = {program.name: program for program in every()}


def read(program: str, files: Sequence[Path], stated: Stated | None = None) -> Imported:
    """What `fscale import PROGRAM FILES` makes of files."""
    return run.read(PROGRAMS[program], files, stated or Stated(), Path("results/imported"))


def check_robust(reading: Callable[[], Imported]) -> None:
    """Check that files which may be damaged are refused, or give cells that can be stored."""
    try:
        found = reading()
    except FscaleError as error:
        assert str(error).isprintable()
        return
    for cell in found.cells:
        assert Cell.model_validate_json(cell.model_dump_json(by_alias=True)) == cell
        assert cell.status == "ok" or not cell.ops_per_second
