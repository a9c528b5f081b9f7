# SPDX-License-Identifier: GPL-2.0-only
"""Runs one application benchmark by itself: `python -m fscale.apps --workload dbench --dir /mnt`.

The runner starts this process for a cell. It prints one JSON object, even if it fails. Exit codes:
0 good, 1 error, 2 usage, 3 interrupted, 77 a requirement is not installed.
"""

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from fscale.apps.base import (
    App,
    AppError,
    AppResult,
    AppSkipped,
    Options,
    Site,
    Timing,
    Turns,
    advice,
    settings,
)
from fscale.apps.registry import applications
from fscale.model.catalogue import suggest
from fscale.model.errors import Exit, FscaleError
from fscale.model.fault import of_os_error


class _Stopped(BaseException):
    """SIGTERM or SIGINT came."""


def _cpus(text: str) -> list[int]:
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fscale.apps", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the applications as JSON")
    parser.add_argument("--workload", metavar="ID", help="an id that --list prints")
    parser.add_argument("--load", metavar="FILE.toml", help="the file of a load of one's own")
    parser.add_argument(
        "--dir", type=Path, action="append", default=[], help="repeat for each partition"
    )
    parser.add_argument("--cpus", type=_cpus, metavar="LIST", help="such as 0,1,4-7")
    parser.add_argument("--workers-per-cpu", type=int, default=1, metavar="N")
    parser.add_argument("--duration", type=float, default=5.0, metavar="SEC")
    parser.add_argument("--warmup", type=float, default=1.0, metavar="SEC")
    parser.add_argument("--margin", type=float, default=60.0, metavar="SEC")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--space", type=int, metavar="BYTES", help="most to fill, over all --dir")
    parser.add_argument("--option", type=_option, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--scratch", type=Path, help="outside of the file system under test")
    parser.add_argument("--cgroup", type=Path)
    parser.add_argument(
        "--sync-fds", type=_fds, metavar="R,W", help="say ready on W, wait for a byte on R"
    )
    parser.add_argument("--slice", type=float, metavar="SEC", help="a turn for each byte on R")
    parser.add_argument("--settle", action="store_true", help="after each turn")
    parser.add_argument("--mode", help="one that the application has; its first by default")
    arguments = parser.parse_args()
    if not arguments.list and not (arguments.workload and arguments.dir and arguments.cpus):
        parser.error("--workload, --dir and --cpus are needed")
    if arguments.slice and not arguments.sync_fds:
        parser.error("--slice needs --sync-fds, by which turns are asked for")
    return arguments


def _free(dirs: list[Path]) -> int:
    return sum(s.f_bavail * s.f_frsize for s in map(os.statvfs, dirs))


def _ready(fds: tuple[int, int] | None, turns: Turns | None) -> None:
    if fds is None:
        return
    read, write = fds
    os.write(write, b"ready\n")
    if not turns and not os.read(read, 1):
        raise AppError("the runner ended before the timed window began", fault="machine")


def _fds(text: str) -> tuple[int, int]:
    read, write = (int(fd) for fd in text.split(","))
    return read, write


def _turns(app: App, arguments: argparse.Namespace) -> Turns | None:
    if not arguments.slice:
        return None
    if not app.sliced:
        raise AppError(f"{app.descriptor.id} cannot work in turns; leave --slices out")
    return Turns(arguments.slice, arguments.settle, *arguments.sync_fds)


def raise_priority() -> None:
    """Raise this process's priority, so that it notices the edges of the timed window in time.

    This process sleeps except at the edges. Processes that it starts keep the normal priority.
    """
    with contextlib.suppress(
        PermissionError
    ):  # without root the edges may be late, which the result records
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def _measure(app: App, arguments: argparse.Namespace, scratch: Path) -> AppResult:
    package = app.missing()
    if package:
        raise AppSkipped(f"{app.descriptor.id} needs {package}; {advice(package)}")
    if len(arguments.dir) > 1 and not app.descriptor.partitions:
        raise AppError(f"{app.descriptor.id} cannot be spread over partitions; give one --dir")
    given: Options = dict(arguments.option)
    options = settings(app.descriptor, given)
    if arguments.cgroup:
        (arguments.cgroup / "cgroup.procs").write_text(str(os.getpid()))
    os.sched_setaffinity(0, arguments.cpus)
    for directory in arguments.dir:
        if not directory.is_dir():
            raise AppError(f"{directory} is not a directory")
    if arguments.workers_per_cpu > 1 and not app.oversubscribes:
        raise AppError(
            f"{app.descriptor.id} cannot start several workers on each CPU; leave "
            "--workers-per-cpu out"
        )
    site = Site(
        dirs=[directory.resolve() for directory in arguments.dir],
        cpus=arguments.cpus,
        scratch=scratch,
        space=arguments.space or _free(arguments.dir),
        seed=arguments.seed,
        workers_per_cpu=arguments.workers_per_cpu,
        cgroup=arguments.cgroup,
    )
    turns = _turns(app, arguments)
    timing = Timing(arguments.duration, arguments.warmup, arguments.margin, turns)
    raise_priority()
    measured = app.run(site, timing, options, lambda: _ready(arguments.sync_fds, turns))
    if not measured.amount > 0 or not measured.seconds > 0:
        raise AppError(
            f"{app.descriptor.id} did nothing in the timed window: "
            f"{measured.amount} {measured.unit}"
        )
    measured.extra["options"] = options
    measured.extra["version"] = app.version()
    measured.extra["partitions"] = len(site.dirs)
    return measured


def _result(app: App, arguments: argparse.Namespace) -> tuple[dict[str, Any], int]:
    def stop(*_: object) -> None:
        raise _Stopped

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        # The programs run in another directory, so relative paths would not work.
        parent = arguments.scratch.resolve() if arguments.scratch else None
        with tempfile.TemporaryDirectory(prefix="fscale-", dir=parent) as scratch:
            measured = _measure(app, arguments, Path(scratch))
    except AppSkipped as error:
        return {"status": "skipped", "reason": str(error)}, Exit.SKIPPED
    except FscaleError as error:
        return {"status": "error", "reason": str(error), "fault": error.fault}, Exit.FAILED
    except OSError as error:
        blamed = of_os_error(error, arguments.dir)
        return {"status": "error", "reason": str(error), "fault": blamed}, Exit.FAILED
    except Exception as error:  # a parser met what its program does not usually print
        reason = (
            f"the output of {app.descriptor.id} is not what its driver expects "
            f"({type(error).__name__}: {error}); its version may be unknown to fscale"
        )
        return {"status": "error", "reason": reason, "fault": "machine"}, Exit.FAILED
    except _Stopped:
        return {"status": "interrupted", "reason": "stopped by a signal"}, Exit.INTERRUPTED
    return {
        "status": "ok",
        "reason": None,
        "amount": measured.amount,
        "unit": measured.unit,
        "seconds": measured.seconds,
        "usage_seconds": measured.usage.seconds,
        "late_seconds": measured.usage.late,
        "cpu": measured.usage.cpu and measured.usage.cpu.model_dump(),
        "own_cpu_seconds": measured.usage.own,
        "busy_cpu_seconds": measured.usage.busy,
        "extra": measured.extra,
        "commands": [command.model_dump() for command in measured.commands],
        "latency": measured.latency,
    }, Exit.GOOD


def _refusal(apps: dict[str, App], arguments: argparse.Namespace) -> str | None:
    if arguments.workload not in apps:
        return f"there is no application {arguments.workload}{suggest(arguments.workload, apps)}"
    modes = apps[arguments.workload].descriptor.modes
    if arguments.mode and arguments.mode not in modes:
        return f"{arguments.workload} has no mode {arguments.mode}; give {' or '.join(modes)}"
    return None


def main() -> int:
    """Run the application that the command line names."""
    arguments = _arguments()
    try:
        every = applications([arguments.load] if arguments.load else [])
    except FscaleError as error:
        print(f"fscale-app: {error}", file=sys.stderr)
        return Exit.USAGE
    apps = {app.descriptor.id: app for app in every}
    if arguments.list:
        print(json.dumps([app.descriptor.model_dump() for app in apps.values()], indent=1))
        return Exit.GOOD
    if refused := _refusal(apps, arguments):
        print(f"fscale-app: {refused}", file=sys.stderr)
        return Exit.USAGE
    result, code = _result(apps[arguments.workload], arguments)
    print(json.dumps({"schema_version": 1, "workload": arguments.workload, **result}, indent=1))
    return code


if __name__ == "__main__":
    sys.exit(main())
