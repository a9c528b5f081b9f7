# SPDX-License-Identifier: GPL-2.0-only
"""What `fscale run` is to measure, and where."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from fscale.apps.adapter import loads
from fscale.commands.options.on import NodesOption
from fscale.commands.options.shared import RunSeedOption, WaitOption
from fscale.commands.options.suite import (
    BinaryOption,
    CoresOption,
    DeviceOption,
    DirectoryOption,
    FilesystemsOption,
    LoadOption,
    MediaOption,
    ModeOption,
    SetOption,
    WorkloadOption,
    YesFormatOption,
)
from fscale.model import paths
from fscale.model.bench import Mode
from fscale.model.catalogue import split_filesystems, split_names
from fscale.model.errors import FscaleError
from fscale.model.helptext import MEASURED, REPEATED
from fscale.model.limits import MOST_REPETITIONS, MOST_SECONDS
from fscale.model.variant import MOST_PARTITIONS
from fscale.runner.request import Request, named_in, parse_cores, parse_list, parse_settings


@dataclass(frozen=True)
class RequestOptions:
    """What `fscale run` is to measure, and where. Each field is an option of the same name."""

    fs: FilesystemsOption = None
    workload: WorkloadOption = None
    cores: CoresOption = None
    media: MediaOption = None
    mode: ModeOption = None
    duration: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=MOST_SECONDS,
            metavar="SECONDS",
            help="Timed seconds per repetition. Default: the suite's.",
            rich_help_panel=MEASURED,
        ),
    ] = None
    repetitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_REPETITIONS,
            metavar="N",
            help="Repetitions per point, each on a fresh file system. Default: the suite's.",
            rich_help_panel=REPEATED,
        ),
    ] = None
    seed: RunSeedOption = None
    option: LoadOption = None
    settings: SetOption = None
    device: DeviceOption = None
    directory: DirectoryOption = None
    yes_format: YesFormatOption = None
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
        typer.Option(
            min=1,
            max=MOST_PARTITIONS,
            metavar="N",
            help="Measure each file system on a disk also on N partitions of the medium (exim, "
            "rocksdb); the same as --fs ext4,ext4:N.",
            rich_help_panel=MEASURED,
        ),
    ] = None
    wait: WaitOption = 0
    on: NodesOption = None
    binary: BinaryOption = paths.BENCH

    def request(self, suite: Path, output: Path) -> Request:
        """Return these options as a request.

        Raises:
            FscaleError: one of them has another form.
        """
        modes = parse_list("--mode", self.mode)
        if modes and (wrong := set(modes) - set(get_args(Mode))):
            raise FscaleError(
                f"--mode {', '.join(wrong)}: no such mode; give one of {', '.join(get_args(Mode))}"
            )
        asked: dict[str, Any] = {
            "filesystems": parse_list("--fs", self.fs, split_filesystems),
            "workloads": parse_list("--workload", self.workload),
            "cores": None if self.cores is None else parse_cores(self.cores),
            "media": parse_list("--media", self.media),
            "modes": modes,
            "duration": self.duration,
            "repetitions": self.repetitions,
            "profiles": None if self.profile is None else split_names(self.profile),
        }
        overrides = {key: value for key, value in asked.items() if value is not None}
        overrides |= parse_settings(self.settings or [], overrides)
        return Request(
            suite=suite,
            output=output,
            overrides=overrides,
            options=self.option or [],
            explicit=named_in(overrides),
            seed=self.seed,
            device=self.device,
            directory=self.directory,
            yes_format=self.yes_format,
            partitions=self.partitions,
            binary=self.binary,
            applications=loads,
        )
