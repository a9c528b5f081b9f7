# SPDX-License-Identifier: GPL-2.0-only
"""Finds the programs whose results can be imported: the modules in `programs`."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fscale.analysis.imports import programs
from fscale.analysis.imports.reading import Reading


@dataclass(frozen=True)
class Program:
    """A program by its name on the command line."""

    name: str
    about: str
    """a sentence: what its files are"""
    example: str
    """files, and options if it needs any"""
    read: Callable[[Mapping[Path, str]], Reading]
    """reads the texts of its files"""


def every() -> list[Program]:
    """All programs, in the order of their names."""
    found = []
    for name in sorted(module.name for module in pkgutil.iter_modules(programs.__path__)):
        module = importlib.import_module(f"{programs.__name__}.{name}")
        command = name.replace("_", "-")
        found.append(Program(command, module.ABOUT, module.EXAMPLE, module.read))
    return found
