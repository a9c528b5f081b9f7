# SPDX-License-Identifier: GPL-2.0-only
"""Exim: messages delivered per second, over SMTP on loopback, to mail boxes on the file system."""

import contextlib
import json
import os
import pwd
import shutil
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fscale.apps.base import (
    EXIM,
    App,
    AppError,
    AppResult,
    AppSkipped,
    Options,
    Site,
    Timing,
    build,
)
from fscale.apps.exim import config
from fscale.apps.meter import Edge, Meter, between
from fscale.apps.namespace import private_tree
from fscale.apps.process import (
    FileSystemFullError,
    Processes,
    command_output,
    error_in_output,
    failure,
)
from fscale.model import paths
from fscale.model.bench import Descriptor, OptionHelp
from fscale.model.errors import FscaleError
from fscale.system.executor import which

# Directories that must stay visible: what runs, and what is started.
BUSY = (paths.PACKAGE, Path(__file__).resolve().parents[1], paths.BUILD, Path(sys.prefix))
_PORT_TRIES = 3  # another program may take a free port before Exim does
_START_SECONDS = 30.0
_DRAIN_SECONDS = 30

DESCRIPTOR = Descriptor(
    id="exim",
    title="Exim mail server",
    operation="deliver one message: receive by SMTP, spool, append to a mail box, unspool",
    paper="FxMark, Figures 1, 12(a), 14(a)",
    type="metadata",
    action="write",
    sharing="low",
    contention="as MWCL and MWUL: small files created and deleted in spool directories",
    setup="one listening Exim for each spool directory; empty mail boxes",
    consumes=False,
    background=False,
    min_cores=1,
    partitions=True,
    modes=["buffered"],
    options=[
        OptionHelp(
            name="fsync",
            default="on",
            choices=["on", "off"],
            help="on: as Debian builds it; off: fsync does nothing (a preloaded library)",
        ),
        OptionHelp(
            name="spools",
            default=60,
            least=1,
            help="spool directories, one Exim daemon per directory; with 1, Exim's own "
            "split_spool_directory, which changes directory every second",
        ),
        OptionHelp(name="clients", default=4, least=1, help="SMTP clients per core"),
        OptionHelp(name="backlog", default=4, least=1, help="most undelivered messages per core"),
        OptionHelp(
            name="per_connection",
            default=10,
            least=1,
            most=1_000_000,
            help="messages per connection",
        ),
        OptionHelp(name="size", default=20, least=1, most=10_000, help="bytes of a message's body"),
        OptionHelp(name="boxes", default=4, least=1, most=100_000, help="mail boxes per client"),
        OptionHelp(
            name="generators",
            default=0,
            least=0,
            most=4096,
            help="sending processes; 0: one per 16 cores",
        ),
        OptionHelp(
            name="spread",
            default="all",
            choices=["all", "spool"],
            help="all: spool directories and mail boxes on every partition; spool: spools on every "
            "partition, all mail boxes on the first",
        ),
        OptionHelp(
            name="port",
            default=0,
            least=0,
            most=65535,
            help="first port of the daemons; 0: any free ports",
        ),
    ],
)


@dataclass(frozen=True)
class Spool:
    """One Exim daemon and its directories."""

    port: int
    log: Path
    configuration: Path

    @property
    def mainlog(self) -> Path:
        """Its delivery log."""
        return self.log / "mainlog"


class Exim(App):
    """Debian's exim4-daemon-light with fscale's own configuration."""

    descriptor = DESCRIPTOR
    unit = "messages"
    user = config.USER

    def missing(self) -> str | None:
        """The package, unless its program and its user exist."""
        with contextlib.suppress(KeyError):
            if which("exim4") and pwd.getpwnam(config.USER):
                return None
        return EXIM

    def version(self) -> str:
        """The version in the output of `exim4 -bV`."""
        return command_output("exim4", "-C", "/dev/null", "-bV").splitlines()[0]

    def run(
        self, site: Site, timing: Timing, options: Options, ready: Callable[[], None]
    ) -> AppResult:
        """Start the daemons, send messages, count deliveries, check that none is lost."""
        if os.geteuid() != 0:
            raise AppSkipped("exim needs root, because it changes to its own user")
        spools = int(options["spools"])
        if spools < len(site.dirs):
            raise AppError(
                f"{len(site.dirs)} partitions need as many spool directories, not {spools}; give "
                f"spools={len(site.dirs)}",
                fault="user",
            )
        scratch, dirs = private_tree(site.dirs, [*BUSY, site.scratch])
        site = replace(site, dirs=dirs, scratch=scratch)
        preload = {"LD_PRELOAD": str(build("nofsync.so"))} if options["fsync"] == "off" else {}
        boxes = int(options["boxes"]) * int(options["clients"]) * site.cores
        mail = _mail_boxes(site, boxes, spread=options["spread"] == "all")
        with Processes(site) as processes:
            daemons = _start(processes, site, options, mail, preload)
            ready()
            argv = _load_argv(daemons, site, timing, options)
            result, edges = _generate(processes, site, argv, timing)
            _wait_for_spools(site)
            extra = _extra(result, edges, daemons, options)
        _check(result, site, mail)
        return AppResult(
            amount=result["delivered"],
            unit=self.unit,
            seconds=result["seconds"],
            usage=between(*edges, (result["start_ns"], result["end_ns"])),
            commands=processes.commands,
            extra=extra,
        )


APPS = [Exim()]


def _own(path: Path) -> Path:
    """Make a directory of Exim's user."""
    path.mkdir(mode=0o750, parents=True)
    shutil.chown(path, config.USER, config.USER)
    return path


def _mail_boxes(site: Site, boxes: int, spread: bool) -> Path:
    """A directory `mail` with one entry per box, each a link to the partitions in rotation."""
    mail = _own(site.scratch / "mail")
    for number in range(boxes):
        where = site.dirs[number % len(site.dirs) if spread else 0]
        (mail / str(number)).symlink_to(_own(where / "mail" / str(number)))
    return mail


def _free_ports(count: int, first: int) -> list[int]:
    if first:
        return list(range(first, first + count))
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [int(free.getsockname()[1]) for free in sockets]


def _start(
    processes: Processes, site: Site, options: Options, mail: Path, env: dict[str, str]
) -> list[Spool]:
    """Start a daemon for each spool directory and wait until all listen."""
    count = int(options["spools"])
    exim = which("exim4") or "exim4"
    directories = [_own(site.dirs[i % len(site.dirs)] / "spool" / str(i)) for i in range(count)]
    for attempt in range(_PORT_TRIES):
        daemons = []
        for i, port in enumerate(_free_ports(count, int(options["port"]))):
            log = _own(site.scratch / f"exim-{attempt}-{i}")
            (log / "mainlog").touch()
            shutil.chown(log / "mainlog", config.USER, config.USER)
            path = log / "exim.conf"
            path.write_text(config.text(exim, directories[i], mail, log, port, split=count == 1))
            daemons.append(Spool(port, log, path))
        try:
            _start_daemons(processes, exim, daemons, env)
        except _PortInUseError:
            if options["port"] or attempt == _PORT_TRIES - 1:
                raise
            processes.kill()
        else:
            return daemons
    raise AssertionError("unreachable")


class _PortInUseError(AppError):
    """Another program listens on a daemon's port."""


def _start_daemons(
    processes: Processes, exim: str, daemons: list[Spool], env: dict[str, str]
) -> None:
    running = []
    for daemon in daemons:
        with (daemon.log / "out").open("wb") as output:
            argv = [exim, "-C", str(daemon.configuration), "-bdf"]
            running.append(processes.start(argv, output=output, env=env))
    deadline = time.monotonic() + _START_SECONDS
    for daemon, process in zip(daemons, running, strict=True):
        while "daemon started" not in daemon.mainlog.read_text(errors="replace"):
            returncode = process.poll()
            if returncode is not None or time.monotonic() > deadline:
                raise _no_start(daemon, returncode)
            time.sleep(0.005)


def _no_start(daemon: Spool, returncode: int | None) -> AppError:
    log = (daemon.log / "out").read_text(errors="replace")
    log += daemon.mainlog.read_text(errors="replace")
    if "Address already in use" in log:
        return _PortInUseError(f"exim: port {daemon.port} is in use; choose another, or 0 for any")
    if returncode is None:
        return AppError(f"exim did not start within {_START_SECONDS:.0f} s: {log[-300:]}")
    return failure("exim", returncode, log)


def _load_argv(daemons: list[Spool], site: Site, timing: Timing, options: Options) -> list[str]:
    generators = int(options["generators"]) or -(-site.cores // 16)
    argv = [str(build("fscale-smtp-load"))]
    for daemon in daemons:
        argv += ["--port", str(daemon.port), "--log", str(daemon.mainlog)]
    for flag, value in (
        ("--clients", int(options["clients"]) * site.cores),
        ("--backlog", int(options["backlog"]) * site.cores),
        ("--processes", generators),
        ("--boxes", options["boxes"]),
        ("--per-connection", options["per_connection"]),
        ("--size", options["size"]),
        ("--seed", site.seed),
        ("--warmup", f"{timing.warmup:g}"),
        ("--duration", f"{timing.duration:g}"),
        ("--drain", _DRAIN_SECONDS),
    ):
        argv += [flag, str(value)]
    return argv


def _generate(
    processes: Processes, site: Site, argv: list[str], timing: Timing
) -> tuple[dict[str, Any], tuple[Edge, Edge]]:
    meter = Meter(site.cpus, site.cgroup)
    edges: list[Edge] = []
    lines: list[str] = []

    def watch(line: str) -> None:
        if line in ("start", "end"):
            edges.append(meter.open() if line == "start" else meter.close())
        lines.append(line)

    timeout = timing.warmup + timing.duration + timing.margin + _DRAIN_SECONDS
    try:
        processes.run(argv, timeout=timeout, watch=watch)
    except FileSystemFullError:
        raise FileSystemFullError(
            "exim"
        ) from None  # rather than the error of the clients, which results from it
    except FscaleError as error:
        raise AppError(_why(lines) or str(error)) from None
    return parse(lines[-1]), (edges[0], edges[1])


def _why(lines: list[str]) -> str | None:
    error = error_in_output(lines)
    if error is None:
        return None
    # Exim reports a short write without errno, and frees the space again.
    short = "journal" in error or "writing spool file" in error
    full = " (most likely the file system is full)" if short else ""
    return f"exim: {error}{full}"


def parse(text: str) -> dict[str, Any]:
    """The generator's JSON; AppError for an error in it and for a run that delivered nothing."""
    try:
        result: dict[str, Any] = json.loads(text)
    except ValueError:
        raise AppError(f"the SMTP clients printed no valid result: {text[:200]}") from None
    if result["error"]:
        raise AppError(f"exim: {result['error']}")
    if not result["delivered"]:
        raise AppError("exim: no message was delivered in the timed window")
    if result["delivered_in_all"] != result["accepted_in_all"]:
        raise AppError(
            f"exim: {result['accepted_in_all']} messages were accepted, but only "
            f"{result['delivered_in_all']} were delivered"
        )
    return result


def count_messages(mail: Path) -> int:
    """The number of messages in all mail boxes: each begins with a `From ` line of Exim."""
    return sum(
        line.startswith(b"From ")
        for box in mail.glob("*/mbox")
        for line in box.read_bytes().splitlines()
    )


def _spooled(site: Site) -> list[Path]:
    return [p for d in site.dirs for p in d.glob("spool/*/input/**/*") if p.is_file()]


def _wait_for_spools(site: Site) -> None:
    """Wait for the spool: Exim logs the completion before it removes a message's last file."""
    deadline = time.monotonic() + _DRAIN_SECONDS
    while _spooled(site) and time.monotonic() < deadline:
        time.sleep(0.01)


def _check(result: dict[str, Any], site: Site, mail: Path) -> None:
    """AppError unless the mail boxes have all logged messages and the spools are empty."""
    boxes = count_messages(mail)
    if boxes != result["delivered_in_all"]:
        raise AppError(
            f"exim: the log has {result['delivered_in_all']} deliveries, "
            f"but the mail boxes have {boxes} messages"
        )
    if left := _spooled(site):
        raise AppError(f"exim: {len(left)} files remain in the spool, such as {left[0]}")


def _extra(
    result: dict[str, Any], edges: tuple[Edge, Edge], daemons: list[Spool], options: Options
) -> dict[str, Any]:
    usage = between(*edges)
    spent = usage.own if usage.own is not None else usage.busy
    generator = result["generator_cpu_seconds"]
    return {
        "label": f"fsync {options['fsync']}"
        + (" (preloaded library)" if options["fsync"] == "off" else " (as built)"),
        "generator": {
            "cpu_seconds": generator,
            "share_of_own_cpu": generator / spent if spent else None,
            # 1 would mean that each generator process had a core to itself and used all of it.
            "busy_per_process": generator / result["processes"] / usage.seconds,
            "processes": result["processes"],
            "backlog_mean": result["backlog_mean"],
            "backlog_empty_share": result["backlog_empty_share"],
        },
        "accepted": result["accepted"],
        "messages_checked_in_mail_boxes": result["delivered_in_all"],
        "configuration": daemons[0].configuration.read_text(),
        "daemons": len(daemons),
    }
