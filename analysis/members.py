# SPDX-License-Identifier: GPL-2.0-only
"""The runs that a report shows: one, or several beside one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from fscale.analysis.labels import MOST, labels
from fscale.analysis.reader import Results, load
from fscale.model import filetest
from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.results import Cell

MAX_RUNS = 12  # that a reader can tell apart
_RESERVED = "()"  # a curve is named FILESYSTEM (RUN)


@dataclass(frozen=True)
class NamedRun:
    """A results directory and the user's label; None: the label is built from differences.

    Raises:
        FscaleError: the label is not valid.
    """

    path: Path
    label: str | None = None

    def __post_init__(self) -> None:
        label = self.label
        if label is None or (
            0 < len(label) <= MOST and printable(label) == label and not set(label) & set(_RESERVED)
        ):
            return
        raise FscaleError(
            f"{printable(str(self.path))}: the label {printable(label)} must be printable text of "
            f"1 to {MOST} characters without ( and )"
        )

    @classmethod
    def parse(cls, text: str) -> "NamedRun":
        """Parse `DIR` or `DIR=LABEL`; an existing directory may have a `=` in its own name.

        Raises:
            FscaleError: the label is not valid.
        """
        path, equals, label = text.rpartition("=")
        if not equals or not path or filetest.is_dir(text):
            return cls(Path(text))
        return cls(Path(path), label.strip())


@dataclass(frozen=True)
class Member:
    """A run of a report. If there is one run only, it has no label and no side.

    A label that the user gave it anyway is in `run`.
    """

    results: Results
    label: str | None = None
    run: str | None = None
    """the label without the side: both sides of a paired run have the same"""
    side: str | None = None
    """the side of a paired run, if each side is shown as a run"""
    all_sides: bool = True

    @property
    def name(self) -> str:
        """The name of the run in tables."""
        return self.run or self.results.run.id

    @property
    def cells(self) -> list[Cell]:
        """All cells of the run, or of its side."""
        return [c for c in self.results.cells if self._has(c)]

    @property
    def scored(self) -> list[Cell]:
        """The scored cells."""
        return [c for c in self.results.scored if self._has(c)]

    def _has(self, cell: Cell) -> bool:
        return self.all_sides or cell.key.side == self.side


def open_named(named_runs: Sequence[NamedRun]) -> tuple[Member, ...]:
    """Read one run or several; see `open_members`.

    Raises:
        FscaleError: as `open_members`; also if there is no run.
    """
    if not named_runs:
        raise FscaleError("there is no run to read; give a results directory")
    if len(named_runs) > 1:
        return open_members(named_runs)
    (only,) = named_runs
    return (Member(load(only.path), run=only.label),)


def open_members(named_runs: Sequence[NamedRun]) -> tuple[Member, ...]:
    """Read several runs and name them; each side of a paired run is one of its own.

    Raises:
        FscaleError: a directory is not a run or is given twice, two contain the same cells, or two
            have the same label.
    """
    _refuse_twice([one.path.resolve() for one in named_runs])
    opened = [load(one.path) for one in named_runs]
    _refuse_copies(opened)
    named = labels(opened, [one.label for one in named_runs])
    members: list[Member] = []
    for results, label in zip(opened, named, strict=True):
        for side in sorted({c.key.side or "" for c in results.cells}):
            name = f"{label} {side}".strip()
            members.append(Member(results, name, label, side or None, all_sides=False))
    used = [str(member.label) for member in members]
    if twice := sorted({label for label in used if used.count(label) > 1}):
        raise FscaleError(f"two runs have the label {twice[0]}; give each its own with DIR=LABEL")
    return tuple(members)


def refuse_many(members: Sequence[Member]) -> None:
    """Refuse to draw more runs than a reader can tell apart.

    Raises:
        FscaleError: there are more than `MAX_RUNS`.
    """
    if len(members) > MAX_RUNS:
        raise FscaleError(
            f"{len(members)} runs are too many to tell apart in a chart; give at most {MAX_RUNS}"
        )


def _refuse_twice(paths: Sequence[Path]) -> None:
    if twice := [path for path in paths if paths.count(path) > 1]:
        raise FscaleError(f"{twice[0]} is given twice; give each run once")


def _refuse_copies(opened: Sequence[Results]) -> None:
    """FscaleError if two runs share cells: one is a copy, or was resumed from a copy."""
    for one, other in combinations(opened, 2):
        own = {cell.id: cell for cell in one.cells}
        shared = [cell.id for cell in other.cells if own.get(cell.id) == cell]
        if shared:
            raise FscaleError(
                f"{one.path} and {other.path} contain the same {len(shared)} cells, such as "
                f"{shared[0]}, so one is a copy of the other; give only one of them"
            )
