# SPDX-License-Identifier: GPL-2.0-only
"""The interface of application drivers: where they run, what they return, how they fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fscale.apps.meter import Usage
from fscale.model import paths
from fscale.model.bench import Descriptor
from fscale.model.errors import Exit, FscaleError
from fscale.model.fault import Fault
from fscale.model.results import Command
from fscale.system.programs import why_not

Options = dict[str, int | str]

EXIM = "exim4-daemon-light"  # its Debian package


class AppError(FscaleError):
    """The application failed, so there is an error and no result."""

    code = Exit.FAILED
    fault: Fault = "load"


class AppSkipped(FscaleError):  # noqa: N818 - it is no failure
    """The machine lacks a requirement of the application; the text names it."""

    code = Exit.SKIPPED


@dataclass(frozen=True)
class Site:
    """The place of one run: directories, CPUs, cgroup."""

    dirs: Sequence[Path]  # one empty directory on each file system under test
    cpus: Sequence[int]  # all processes of the driver are confined to these
    scratch: Path  # logs and sockets; not on a file system under test
    space: int  # bytes that the load may fill over all `dirs`
    seed: int = 1
    workers_per_cpu: int = 1
    cgroup: Path | None = None  # cgroup v2 directory that the driver and all that it starts are in

    @property
    def cores(self) -> int:
        """The number of CPUs under test."""
        return len(self.cpus)

    @property
    def workers(self) -> int:
        """The number of workers on all CPUs together."""
        return len(self.cpus) * self.workers_per_cpu


@dataclass(frozen=True)
class Turns:
    """How the runner requests turns: a byte for each, answered by a line."""

    seconds: float
    settle: bool  # whether deferred work of a turn is written out after it
    requests: int  # file descriptor; end of file ends the run
    answers: int  # file descriptor


@dataclass(frozen=True)
class Timing:
    """The seconds of the timed window and of the warm-up before it."""

    duration: float
    warmup: float = 0.0
    margin: float = 60.0  # after both, until a program that hangs is killed
    turns: Turns | None = None  # instead of one window


@dataclass(frozen=True)
class AppResult:
    """The figure of one run: `amount` of `unit` in `seconds`, never zero."""

    amount: float
    unit: str
    seconds: float
    usage: Usage  # CPU time over (about) the same seconds
    commands: list[Command]
    latency: dict[str, Any] | None = None  # as in `results.Cell`
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """`amount` per second."""
        return self.amount / self.seconds


class App(Protocol):
    """One application. `run` starts on fresh directories and leaves no process behind."""

    descriptor: Descriptor
    unit: str
    sliced: bool = False
    """whether it can work in turns, so that two sides can alternate"""
    oversubscribes: bool = False
    """whether it starts `site.workers_per_cpu` workers on each CPU"""
    user: str | None = None
    """the user as which it works in the directory, if fscale runs as root; None: as root"""

    def missing(self) -> str | None:
        """The Debian package that this machine lacks, or None."""

    def version(self) -> str:
        """The version as the program itself prints it."""

    def run(
        self, site: Site, timing: Timing, options: Options, ready: Callable[[], None]
    ) -> AppResult:
        """Set up, call `ready` (set-up is over), measure, stop everything.

        With turns in `timing`, after `ready` a turn is measured for each byte that is read. Raises
        AppError if anything failed: a figure is returned only for a clean run.
        """


def settings(descriptor: Descriptor, given: Options) -> Options:
    """The descriptor's defaults, overridden by `given`; AppError for unknown options or values."""
    known = {option.name: option for option in descriptor.options}
    result: Options = {name: option.default for name, option in known.items()}
    for name, value in given.items():
        option = known.get(name)
        if option is None:
            raise AppError(
                f"{descriptor.id} has no option {name}; its options: {', '.join(known) or 'none'}",
                fault="user",
            )
        if not option.accepts(value):
            raise AppError(f"{descriptor.id}: {option.refusal(value)}", fault="user")
        result[name] = str(value) if option.least is None else int(value)
    return result


def advice(package: str) -> str:
    """How to install a Debian package of an application."""
    if package == EXIM:  # Debian's own installation would start a mail server
        return f"as root, run {paths.PACKAGE / 'apps' / 'exim' / 'install.sh'}"
    return f"apt-get install {package}"


def build(name: str) -> Path:
    """A program or library of `apps/Makefile`; AppSkipped if it cannot be compiled."""
    program = paths.APPS / name
    if reason := why_not(program):
        raise AppSkipped(reason)
    return program
