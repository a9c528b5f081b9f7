# SPDX-License-Identifier: GPL-2.0-only
"""What is measured on both sides, and where."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fscale.apps.adapter import loads
from fscale.commands.options.shared import WaitOption
from fscale.commands.options.suite import (
    BinaryOption,
    CoresOption,
    DeviceOption,
    DirectoryOption,
    ModeOption,
    OneMediumOption,
    SetOption,
    SuiteOption,
    WorkloadOption,
    YesFormatOption,
)
from fscale.model import catalogue, corecounts, paths
from fscale.model.crew import KEEP_FREE
from fscale.model.errors import FscaleError
from fscale.model.helptext import MEASURED
from fscale.model.latency import PERCENTILES
from fscale.model.limits import MOST_SECONDS
from fscale.runner.request import (
    Request,
    named_in,
    parse_cores,
    parse_list,
    parse_settings,
    read_suite,
)
from fscale.vm.options import GuestOptions

# Suite keys that a paired run sets itself.
OWN = {"filesystems", "repetitions", "profile_repetitions"}


_CONTRADICTION = (
    "--metric {} needs latencies, which --set latency=false turns off; leave one of them out"
)


def wanted_latencies(metrics: Collection[str]) -> list[str]:
    """Return those of the metrics for which latencies must be recorded."""
    return [metric for metric in metrics if metric in PERCENTILES]


def recording(given: Sequence[str], metrics: Collection[str]) -> list[str]:
    """Return arguments of `fscale run` that record the latencies which the `metrics` need.

    Raises:
        FscaleError: the arguments say that no latencies are recorded.
    """
    wanted = wanted_latencies(metrics)
    keys = [text.removeprefix("--set=").replace(" ", "") for text in given]
    if wanted and "latency=false" in keys:
        raise FscaleError(_CONTRADICTION.format(wanted[0]))
    return [*given, *(["--set=latency=true"] if wanted and "latency=true" not in keys else [])]


@dataclass(frozen=True)
class MeasureOptions:
    """What is measured on both sides, and where."""

    suite: SuiteOption = Path("quick")
    workload: WorkloadOption = None
    cores: CoresOption = None
    media: OneMediumOption = None
    mode: ModeOption = None
    duration: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=MOST_SECONDS,
            metavar="SECONDS",
            help="Timed seconds per repetition; not used in slices. Default: the suite's.",
            rich_help_panel=MEASURED,
        ),
    ] = None
    suite_keys: SetOption = None
    device: DeviceOption = None
    yes_format: YesFormatOption = None
    directory: DirectoryOption = None
    binary: BinaryOption = paths.BENCH
    wait: WaitOption = 0

    def request(self, output: Path, seed: int | None, metrics: Collection[str] = ()) -> Request:
        """Return a request for one side, still without its file system.

        Latencies are recorded if one of the `metrics` needs them.

        Raises:
            FscaleError: an option is invalid.
        """
        asked: dict[str, Any] = {
            "workloads": parse_list("--workload", self.workload),
            "cores": None if self.cores is None else parse_cores(self.cores),
            "media": None if self.media is None else [self.media],
            "modes": parse_list("--mode", self.mode),
            "duration": self.duration,
            "profiles": [],
        }
        overrides = {name: value for name, value in asked.items() if value is not None}
        overrides |= parse_settings(self.suite_keys or [], overrides)
        if own := sorted(OWN & overrides.keys()):
            raise FscaleError(
                f"--set {own[0]}: a paired run sets this key itself; name file systems in --base "
                "and --new, give --repetitions, or profile with `fscale run`"
            )
        if wanted := wanted_latencies(metrics):
            if overrides.get("latency") is False:
                raise FscaleError(_CONTRADICTION.format(wanted[0]))
            overrides["latency"] = True
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
        read_suite(request)  # reports errors in the suite before waiting for another run
        return request

    @property
    def in_guest(self) -> list[str]:
        """These options as arguments of `fscale run` in a guest."""
        options = {"workload": self.workload, "cores": self.cores, "media": self.media}
        options |= {
            "mode": self.mode,
            "duration": None if self.duration is None else str(self.duration),
        }
        given = [f"--{name}={value}" for name, value in options.items() if value is not None]
        return given + [f"--set={text}" for text in self.suite_keys or []]

    @property
    def guest(self) -> GuestOptions:
        """Guests with the CPUs of the largest core count, if --cores gives one, and of keep_free.

        Raises:
            FscaleError: --cores has no core counts.
        """
        counts = None if self.cores is None else parse_cores(self.cores)
        most = 0 if counts is None or isinstance(counts, str) else corecounts.largest(counts)
        if not most:
            return GuestOptions()
        suite_keys = parse_settings(self.suite_keys or [], {})
        kept = suite_keys.get(KEEP_FREE, catalogue.load_suite(self.suite).keep_free)
        return GuestOptions(smp=most + (kept if isinstance(kept, int) else 0))
