# SPDX-License-Identifier: GPL-2.0-only
"""What is measured, and where: the options of every command that measures a suite."""

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Self, get_args

import typer

from fscale.apps.adapter import loads
from fscale.commands.options.helptext import MEASURED
from fscale.commands.options.shared import WaitOption
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
    SuiteOption,
    WorkloadOption,
    YesFormatOption,
)
from fscale.model import catalogue, corecounts, paths
from fscale.model.bench import Mode
from fscale.model.crew import KEEP_FREE
from fscale.model.errors import FscaleError
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

OF_A_PAIRED_RUN = {"filesystems", "repetitions", "profiles", "profile_repetitions", "remeasure"}
"""suite keys that a paired run sets itself"""
_OPTIONS = {"suite_keys": "set", "directory": "dir"}
"""names of options that differ from those of their fields"""


@dataclass(frozen=True)
class MeasureOptions:
    """What is measured, and where. Each field is an option of the same name."""

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
    option: LoadOption = None
    suite_keys: SetOption = None
    device: DeviceOption = None
    directory: DirectoryOption = None
    yes_format: YesFormatOption = None
    binary: BinaryOption = paths.BENCH
    wait: WaitOption = 0

    @property
    def named_keys(self) -> dict[str, Any]:
        """The suite keys that have an option of their own; None: the option is not given.

        Raises:
            FscaleError: one of the options has another form.
        """
        modes = parse_list("--mode", self.mode)
        if modes and (wrong := set(modes) - set(get_args(Mode))):
            raise FscaleError(
                f"--mode {', '.join(wrong)}: no such mode; give one of {', '.join(get_args(Mode))}"
            )
        return {
            "filesystems": parse_list("--fs", self.fs, catalogue.split_filesystems),
            "workloads": parse_list("--workload", self.workload),
            "cores": None if self.cores is None else parse_cores(self.cores),
            "media": parse_list("--media", self.media),
            "modes": modes,
            "duration": self.duration,
        }

    def request(self, suite: Path, output: Path) -> Request:
        """Return these options as a request.

        Raises:
            FscaleError: one of them has another form.
        """
        overrides = {key: value for key, value in self.named_keys.items() if value is not None}
        overrides |= parse_settings(self.suite_keys or [], overrides)
        return Request(
            suite=suite,
            output=output,
            overrides=overrides,
            options=self.option or [],
            explicit=named_in(overrides),
            device=self.device,
            directory=self.directory,
            yes_format=self.yes_format,
            binary=self.binary,
            applications=loads,
        )

    @property
    def arguments(self) -> list[str]:
        """The options that are given, as arguments of `fscale run SUITE`."""
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default or field.name == "suite":
                continue
            option = _OPTIONS.get(field.name, field.name.replace("_", "-"))
            words += [f"--{option}={v}" for v in (value if isinstance(value, list) else [value])]
        return words


@dataclass(frozen=True)
class PairedOptions(MeasureOptions):
    """What is measured on both sides, and where."""

    suite: SuiteOption = Path("quick")

    def paired_request(self, output: Path, seed: int | None, metrics: Collection[str]) -> Request:
        """Return a request for one side, still without its file system.

        Latencies are recorded if one of the `metrics` needs them.

        Raises:
            FscaleError: an option is invalid.
        """
        request = self.recording(metrics).request(self.suite, output)
        if taken := sorted(OF_A_PAIRED_RUN & request.overrides.keys()):
            raise FscaleError(
                f"--set {taken[0]}: a paired run sets this key itself; name file systems in --base "
                "and --new, give --repetitions, or profile with `fscale run`"
            )
        request = replace(request, seed=seed, overrides=request.overrides | {"profiles": []})
        read_suite(request)  # reports errors in the suite before waiting for another run
        return request

    def recording(self, metrics: Collection[str]) -> Self:
        """Return options that also record the latencies which the `metrics` need.

        Raises:
            FscaleError: --set turns latencies off.
        """
        latencies = [metric for metric in metrics if metric in PERCENTILES]
        keys = self.suite_keys or []
        recorded = parse_settings(keys, {}).get("latency")
        if not latencies or recorded is True:
            return self
        if recorded is False:
            raise FscaleError(
                f"--metric {latencies[0]} needs latencies, which --set latency=false turns off; "
                "leave one of them out"
            )
        return replace(self, suite_keys=[*keys, "latency=true"])

    @property
    def guest_cpus(self) -> int | None:
        """CPUs of a guest for the largest core count and keep_free; None without core counts."""
        counts = None if self.cores is None else parse_cores(self.cores)
        most = 0 if counts is None or isinstance(counts, str) else corecounts.largest(counts)
        if not most:
            return None
        suite_keys = parse_settings(self.suite_keys or [], {})
        kept = suite_keys.get(KEEP_FREE, catalogue.load_suite(self.suite).keep_free)
        return most + (kept if isinstance(kept, int) else 0)
