# SPDX-License-Identifier: GPL-2.0-only
"""What is measured of each side, and on what."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from apps.adapter import loads
from fscale.commands.list import complete_media, complete_suites
from fscale.commands.run import (
    CoresOption,
    DeviceOption,
    ModeOption,
    SetOption,
    WorkloadOption,
    YesFormatOption,
)
from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.limits import MOST_SECONDS
from fscale.runner.request import Request, named_in, parse_cores, parse_settings, read_suite
from vm.options import GuestOptions

# Suite keys that are no matter of the suite in a paired run.
OWN = {"filesystems", "repetitions", "profile_repetitions"}


@dataclass(frozen=True)
class MeasureOptions:
    """What is measured of each side, and on what."""

    suite: Annotated[
        Path,
        typer.Option(
            help="What to measure: a suite, by file or name.", autocompletion=complete_suites
        ),
    ] = Path("quick")
    workload: WorkloadOption = None
    cores: CoresOption = None
    media: Annotated[
        str | None,
        typer.Option(help="Medium, as in `fscale list media`.", autocompletion=complete_media),
    ] = None
    mode: ModeOption = None
    duration: Annotated[
        float | None,
        typer.Option(min=0.001, max=MOST_SECONDS, help="Timed seconds per repetition."),
    ] = None
    suite_keys: SetOption = None
    device: DeviceOption = None
    yes_format: YesFormatOption = None
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Measure in this directory, without root.")
    ] = None
    binary: Annotated[Path, typer.Option(help="The microbenchmark.")] = paths.BENCH
    wait: Annotated[
        float,
        typer.Option(
            min=0, max=MOST_SECONDS, help="Seconds to wait for another run to leave the machine."
        ),
    ] = 0

    def request(self, output: Path, seed: int | None) -> Request:
        """A request for one side; its file system comes later. FscaleError."""
        asked: dict[str, Any] = {
            "workloads": self.workload.split(",") if self.workload else None,
            "cores": None if self.cores is None else parse_cores(self.cores),
            "media": [self.media] if self.media else None,
            "modes": self.mode.split(",") if self.mode else None,
            "duration": self.duration,
            "profiles": [],
        }
        overrides = {name: value for name, value in asked.items() if value is not None}
        overrides |= parse_settings(self.suite_keys or [], overrides)
        if own := sorted(OWN & overrides.keys()):
            raise FscaleError(
                f"--set {own[0]}: paired runs decide that themselves; the sides name the file "
                "systems, --repetitions says how many, and nothing is profiled"
            )
        request = Request(
            suite=self.suite,
            output=output,
            overrides=overrides,
            explicit=named_in(overrides),
            seed=seed,
            device=self.device,
            yes_format=self.yes_format,
            directory=self.directory,
            binary=self.binary,
            applications=loads,
        )
        read_suite(request)  # what is wrong in it is said before another run is waited for
        return request

    @property
    def in_guest(self) -> list[str]:
        """The same as options of `fscale run` in a guest."""
        options = {"workload": self.workload, "cores": self.cores, "media": self.media}
        options |= {
            "mode": self.mode,
            "duration": None if self.duration is None else str(self.duration),
        }
        given = [f"--{name}={value}" for name, value in options.items() if value is not None]
        return given + [f"--set={text}" for text in self.suite_keys or []]

    @property
    def guest(self) -> GuestOptions:
        """Guests with as many CPUs as are measured at most, where the numbers are given."""
        counts = [int(part) for part in (self.cores or "").split(",") if part.isdigit()]
        return GuestOptions(smp=max(counts)) if counts else GuestOptions()
