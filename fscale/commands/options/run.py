# SPDX-License-Identifier: GPL-2.0-only
"""What `fscale run` is to measure, and where."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fscale.commands.options.helptext import MEASURED, REPEATED
from fscale.commands.options.kinds import number
from fscale.commands.options.measure import MeasureOptions
from fscale.commands.options.on import NodesOption
from fscale.commands.options.shared import RunSeedOption
from fscale.model.catalogue import split_names
from fscale.model.limits import MOST_REPETITIONS
from fscale.model.variant import MOST_PARTITIONS
from fscale.runner.request import Request


@dataclass(frozen=True)
class RunOptions(MeasureOptions):
    """What `fscale run` is to measure, and where. Each field is an option of the same name."""

    repetitions: Annotated[
        int | None,
        number(
            1,
            MOST_REPETITIONS,
            "Repetitions per point, each on a fresh file system. Default: the suite's.",
            REPEATED,
        ),
    ] = None
    remeasure: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="FRACTION",
            help="Measure cells again at the end that other load disturbed, and curves that are "
            "faster than linear, for up to this fraction of the run's estimated time; 0: none. "
            "Default: the suite's, usually 0.25.",
            rich_help_panel=REPEATED,
        ),
    ] = None
    seed: RunSeedOption = None
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Profilers, separated by commas, or all: locks, cpu, offcpu, counts, hardware, "
            "c2c, lockstat, perf-lock. Each runs in repetitions of its own.",
            rich_help_panel=MEASURED,
        ),
    ] = None
    partitions: Annotated[
        int | None,
        number(
            1,
            MOST_PARTITIONS,
            "Measure each file system on a disk also on N partitions of the medium (exim, "
            "rocksdb); the same as --fs ext4,ext4:N.",
            MEASURED,
        ),
    ] = None
    on: NodesOption = None

    @property
    def named_keys(self) -> dict[str, Any]:
        """See MeasureOptions."""
        profiles = None if self.profile is None else split_names(self.profile)
        return super().named_keys | {
            "repetitions": self.repetitions,
            "profiles": profiles,
            "remeasure": self.remeasure,
        }

    def request(self, suite: Path, output: Path) -> Request:
        """See MeasureOptions."""
        request = super().request(suite, output)
        return replace(request, seed=self.seed, partitions=self.partitions)
