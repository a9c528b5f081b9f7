# SPDX-License-Identifier: GPL-2.0-only
"""The statements of FxMark's paper about its curves (`fxmark.toml` explains the keys)."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from fscale.model.bench import Mode, Strict

Shape = Literal["scales", "does not"]

_FILE = Path(__file__).with_name("fxmark.toml")


class Statement(Strict):
    """A statement of the paper about some curves, with its source."""

    workloads: list[str] = Field(min_length=1)
    filesystems: list[str] = Field(min_length=1)
    mode: Mode = "buffered"
    shape: Shape
    turns: int | None = None
    section: str
    figure: int
    says: str

    @property
    def where(self) -> str:
        """The place in the paper."""
        return f"§{self.section}, figure {self.figure}"


class _File(Strict):
    statement: list[Statement]


@cache
def statements() -> dict[tuple[str, str, str], Statement]:
    """The statements by workload, file system and mode, in the order of the paper.

    Raises:
        ValueError: two statements are about the same curve.
    """
    by_curve: dict[tuple[str, str, str], Statement] = {}
    read = _File.model_validate(tomllib.loads(_FILE.read_text(encoding="utf-8")))
    for statement in read.statement:
        for workload in statement.workloads:
            for filesystem in statement.filesystems:
                curve = (workload, filesystem, statement.mode)
                if curve in by_curve:
                    raise ValueError(f"{_FILE}: two statements about {', '.join(curve)}")
                by_curve[curve] = statement
    return by_curve
