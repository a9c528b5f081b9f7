# SPDX-License-Identifier: GPL-2.0-only
"""Plans of paired runs whose sides are set up as "setup A" and "setup B", for made-up machines."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from fscale.ab.plan import Plan
from fscale.ab.point import PairedPoint
from fscale.ab.record import Looks
from fscale.ab.slicing import Slicing
from fscale.analysis.compare.settings import Settings
from fscale.model.results import CellKey
from fscale.model.store import Store
from fscale.runner.setup import Setup
from tests.support.synthetic import grid, key, write_run


def key_of(workload: str, filesystem: str = "ext4") -> CellKey:
    """A cell of one core."""
    return key(workload=workload, filesystem=filesystem)


def plan_of(
    directory: Path,
    slicing: Mapping[str, Slicing | None],
    settings: Settings,
    looks: Looks,
    repetitions: int = 0,
    new: str = "ext4:mount=wsync",
) -> Plan:
    """Of ext4 against another: how each workload is sliced, None for whole repetitions."""
    run = Store(write_run(directory, grid([1], 1, ["DRBL"], ["ext4"]))).load_run()
    assert run is not None
    for path in (directory / "cells").iterdir():
        path.unlink()
    run.suite |= {"base": "ext4", "new": new}
    setups = cast("dict[str, Setup]", {"A": "setup A", "B": "setup B"})
    points = [PairedPoint(key_of(w), key_of(w, new), how) for w, how in slicing.items()]
    return Plan(setups, run, Store(directory), points, settings, repetitions, looks)
