# SPDX-License-Identifier: GPL-2.0-only
"""The applications as loads of the runner: each cell runs `python -m fscale.apps` once."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from fscale.apps.base import App, advice
from fscale.apps.registry import applications
from fscale.model import fault
from fscale.model.bench import CpuTimes
from fscale.model.fault import Fault
from fscale.model.load import Load, LoadSettings, Outcome, Target
from fscale.model.results import Command, Status
from fscale.system.environment import interpreter

# Limits of the delay in noticing the edges of the window, in seconds and as a share of the window.
LATE_SECONDS = 0.02
LATE_SHARE = 0.05
# Without -P a module in the directory where the user stands would be taken for one of ours.
LAUNCHER = (*interpreter(), "-P", "-m", "fscale.apps")


class AppOutput(BaseModel):
    """The output of `python -m fscale.apps`."""

    model_config = ConfigDict(extra="forbid")

    schema_version: int
    workload: str
    status: Status
    reason: str | None
    fault: Fault | None = None
    amount: float = 0
    unit: str = "ops"
    seconds: float = 0
    usage_seconds: float = 0
    late_seconds: float = 0
    cpu: CpuTimes | None = None
    own_cpu_seconds: float | None = None
    busy_cpu_seconds: float | None = None
    extra: dict[str, object] = {}
    commands: list[Command] = []
    latency: dict[str, object] | None = None


def too_late(late: float, window: float) -> bool:
    """Whether edges were noticed too late, in seconds, for a window of that length."""
    return late > max(LATE_SECONDS, LATE_SHARE * window)


def directories(target: Target) -> list[Path]:
    """The directory that the runner made, or one on each partition."""
    if target.partitions == 1:
        return [target.directory]
    return [target.directory / str(number) / "work" for number in range(target.partitions)]


class AppLoad:
    """One application."""

    synced = True
    named = False  # the programs keep their own process names

    def __init__(self, app: App, file: str | None = None) -> None:
        """`file` is the TOML file of a load that is not in `configs/loads`."""
        self.app = app
        self._file = file
        self.descriptor = app.descriptor
        self.sliced = app.sliced
        self.oversubscribes = app.oversubscribes
        self.user = app.user

    def missing(self) -> str | None:
        """The missing package, if any, and how to install it."""
        package = self.app.missing()
        return f"it needs {package}; {advice(package)}" if package else None

    def version(self) -> str | None:
        """See Load."""
        return None if self.app.missing() else self.app.version()

    def prepare(self, target: Target, run: Callable[[list[str]], str]) -> None:
        """Do nothing: the application sets itself up before it reports that it is ready."""

    def command(
        self, target: Target, settings: LoadSettings, sync: tuple[int, int] | None
    ) -> list[str]:
        """The command line of the application."""
        key = target.key
        argv = [*LAUNCHER, "--workload", key.workload]
        argv += ["--load", self._file] if self._file else []
        for directory in directories(target):
            argv += ["--dir", str(directory)]
        argv += ["--cpus", ",".join(str(cpu) for cpu in target.cpus), "--mode", key.mode]
        argv += ["--workers-per-cpu", str(key.workers_per_cpu)]
        argv += ["--duration", f"{key.duration:g}", "--warmup", f"{settings.warmup:g}"]
        argv += ["--seed", str(target.seed), "--space", str(target.space)]
        argv += ["--scratch", str(target.scratch)]
        for name, value in key.options.items():
            argv += ["--option", f"{name}={value}"]
        if target.cgroup:
            argv += ["--cgroup", str(target.cgroup)]
        if sync:
            argv += ["--sync-fds", f"{sync[0]},{sync[1]}"]
        if settings.slice:
            argv += ["--slice", f"{settings.slice:g}"]
            argv += ["--settle"] if settings.settle else []
        return argv

    def parse(self, target: Target, returncode: int, stdout: str, stderr: str) -> Outcome:
        """Read the JSON object."""
        errors = " / ".join(stderr.strip().splitlines()[-3:])
        try:
            output = AppOutput.model_validate(json.loads(stdout))
        except (ValueError, ValidationError):
            how = f"signal {-returncode}" if returncode < 0 else f"exit code {returncode}"
            return Outcome(
                "error",
                f"{self.app.descriptor.id} gave no result ({how}): {errors}",
                fault.of_exit(returncode, fault.of_output(errors, "machine")),
            )
        if output.status == "ok" and returncode:
            return Outcome("error", f"exit code {returncode} after a good result: {errors}")
        status, reason = output.status, output.reason
        if too_late(output.late_seconds, output.seconds):
            status, reason = (
                "invalid",
                f"the edges of the timed window were noticed {output.late_seconds:.2f} s late, so "
                "CPU times and profiles do not match the window: the machine stalled or is too "
                "busy",
            )
        others = None
        if output.own_cpu_seconds is not None and output.busy_cpu_seconds is not None:
            others = max(0.0, output.busy_cpu_seconds - output.own_cpu_seconds)
        commands = [command.model_dump() for command in output.commands]
        return Outcome(
            status,
            reason,
            output.fault or "load",
            unit=output.unit,
            ops=output.amount,
            seconds=output.seconds,
            cpu=output.cpu,
            own_cpu_seconds=output.own_cpu_seconds,
            others_cpu_seconds=others,
            latency=output.latency,
            extra={**output.extra, "commands": commands, "usage_seconds": output.usage_seconds},
        )


def loads(paths: Sequence[str] = ()) -> list[Load]:
    """All applications, including those that are not installed (see `missing`).

    `paths` are those of TOML files.

    Raises:
        FscaleError: one of them is not valid.
    """
    apps = applications(paths)
    files = [None] * (len(apps) - len(paths)) + [str(Path(path).resolve()) for path in paths]
    return [AppLoad(app, file) for app, file in zip(apps, files, strict=True)]
