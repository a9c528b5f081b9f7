# SPDX-License-Identifier: GPL-2.0-only
"""The two sides of a comparison: their cells and their origin."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from fscale.analysis.compare.model import RunRef
from fscale.analysis.compare.settings import Settings
from fscale.analysis.reader import Results, as_typed, first_error, load
from fscale.model.bench import Strict
from fscale.model.errors import FscaleError
from fscale.model.files import Folder, printable
from fscale.model.results import Cell
from fscale.model.runs import BUILD, BUILD_ID
from fscale.model.store import AB_FILE

# Before the name of a module or a kernel that `fscale vm` has built.
_IN_CACHE = re.compile(r"(?<==)[^=]*/fscale/vm/(module|built)/[0-9a-f]{16}/")


class AbRecord(Strict):
    """`ab.json` beside `run.json`: the two sides of an interleaved run."""

    schema_: int = Field(default=1, alias="schema")
    base: str = Field(description="side A, as the user named it")
    new: str = Field(description="side B")
    looks: list[int] = Field(
        description="repetitions per side at which it looked; empty: at the end"
    )
    pair_looks: list[int] = Field(
        default=[], description="pairs at which it looked, if both sides took turns"
    )
    settings: Settings = Field(default=Settings(), description="rules by which it was judged")

    @model_validator(mode="before")
    @classmethod
    def _metrics_alone(cls, given: Any) -> Any:
        """A record of a version that kept no other rule than the metrics."""
        if isinstance(given, dict) and "metrics" in given and "settings" not in given:
            rest = {name: value for name, value in given.items() if name != "metrics"}
            return rest | {"settings": {"metrics": given["metrics"]}}
        return given


@dataclass(frozen=True)
class Sides:
    """The cells of both sides and their origin."""

    base: RunRef
    new: RunRef
    base_results: Results
    new_results: Results
    base_cells: Sequence[Cell]
    new_cells: Sequence[Cell]
    interleaved: bool = False
    looks: tuple[int, ...] = ()
    pair_looks: tuple[int, ...] = ()
    settings: Settings = field(default_factory=Settings)
    """by which an interleaved run was judged"""

    @property
    def identical(self) -> bool:
        """Whether the sides of an interleaved run are the same, so that each change is noise."""
        versions = self.base_results.run.versions
        other = [name for name in versions if name.endswith(" of B")]
        same_program = all(versions[n] == versions.get(n.removesuffix(" of B")) for n in other)
        return self.interleaved and self.base.label == self.new.label and same_program

    @property
    def counted(self) -> bool:
        """Whether this is a run of `fscale gate`, so that counts and no rates are judged."""
        return self.interleaved and self.base_results.run.machine.simulated


def open_sides(base: Path, new: Path | None) -> Sides:
    """Read two runs, or the two sides of one interleaved run if `new` is None.

    Raises:
        FscaleError: a directory is not a run, a single run is not an interleaved one, or one of two
            is.
    """
    first = load(base)
    if new is not None:
        second = load(new)
        for one in (first, second):
            if any(cell.key.side for cell in one.cells):
                raise FscaleError(
                    f"{one.path} contains both sides of a comparison, which would be mixed; give "
                    "it alone, or two runs of `fscale run`"
                )
        return sides_of((first, first.cells), (second, second.cells), (first.run.id, second.run.id))
    record = _record(base)
    labels = _labels(record.base, record.new)
    return Sides(
        _ref(first, labels[0]),
        _ref_of_b(first, labels[1]),
        first,
        first,
        [c for c in first.cells if c.key.side == "A"],
        [c for c in first.cells if c.key.side == "B"],
        interleaved=True,
        looks=tuple(record.looks),
        pair_looks=tuple(record.pair_looks),
        settings=record.settings,
    )


def sides_of(
    base: tuple[Results, Sequence[Cell]],
    new: tuple[Results, Sequence[Cell]],
    labels: tuple[str, str],
) -> Sides:
    """Two runs, or parts of their cells, that were not interleaved."""
    return Sides(
        _ref(base[0], labels[0]), _ref(new[0], labels[1]), base[0], new[0], base[1], new[1]
    )


def _record(run_dir: Path) -> AbRecord:
    path = run_dir / AB_FILE
    try:
        return AbRecord.model_validate_json(Folder(run_dir).read(AB_FILE))
    except FileNotFoundError:
        raise FscaleError(
            f"{run_dir} is a single run, not an interleaved one of `fscale ab`; "
            "give a second run to compare it with"
        ) from None
    except OSError as error:
        raise FscaleError(f"cannot use {path}: {error.strerror}; run `fscale ab` again") from None
    except ValidationError as error:
        raise FscaleError(
            f"cannot use {path}: {first_error(error)}; run `fscale ab` again"
        ) from None


def _labels(base: str, new: str) -> tuple[str, str]:
    """The names of both sides, with the names of what was built instead of places in a cache."""
    short = _IN_CACHE.sub("", base), _IN_CACHE.sub("", new)
    return (base, new) if short[0] == short[1] else short


def _ref_of_b(results: Results, label: str) -> RunRef:
    """Side B, whose kernel may differ from that of the machine, which is side A's."""
    versions = results.run.versions
    versions_of_b = {
        field: printable(versions[f"{name} of B"])
        for field, name in (("kernel", "kernel"), ("build", BUILD), ("build_id", BUILD_ID))
        if f"{name} of B" in versions
    }
    return _ref(results, label).model_copy(update=versions_of_b)


def _ref(results: Results, label: str) -> RunRef:
    machine = results.run.machine
    return RunRef(
        path=str(results.path),
        id=printable(results.run.id),
        started=printable(results.run.started),
        kernel=printable(machine.kernel),
        build=printable(machine.build.version) if machine.build else None,
        build_id=printable(machine.build.id or "") or None if machine.build else None,
        machine=printable(machine.hostname),
        label=printable(label),
        cpus=printable(machine.cpus),
        command=[printable(as_typed(line)) for line in results.run.command],
    )
