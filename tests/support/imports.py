# SPDX-License-Identifier: GPL-2.0-only
"""Files of other programs, and runs that are made of them."""

from collections.abc import Sequence
from pathlib import Path

from fscale.analysis.imports import run
from fscale.analysis.imports.registry import every
from fscale.analysis.imports.run import Imported, Stated
from fscale.model import paths

FILES = paths.ROOT / "tests/fixtures/imports"
PROGRAMS = {program.name: program for program in every()}


def read(program: str, files: Sequence[Path], stated: Stated | None = None) -> Imported:
    """What `fscale import PROGRAM FILES` makes of files."""
    return run.read(PROGRAMS[program], files, stated or Stated(), Path("results/imported"))
