# SPDX-License-Identifier: GPL-2.0-only
"""Varmail, fileserver and catd: a C program with one worker process per core."""

import json
import os
from collections.abc import Callable
from typing import Any

from fscale import __version__
from fscale.apps.base import App, AppError, AppResult, Options, Site, Timing, build
from fscale.apps.meter import Edge, Meter, Usage, between
from fscale.apps.process import FileSystemFullError, Processes, cpu_list, error_in_output
from fscale.model.bench import Descriptor, OptionHelp

_PROGRAM = "fscale-personality"
_TURN = "turn "  # operations, seconds, CPU seconds, seconds of settling, how it ended
# Mean size of a file and its appends, and what a file system keeps beside it, in file sizes.
_SLACK = 3
# What the program accepts.
_MOST_FILES = 100_000_000
_MOST_BYTES = 1 << 26

_SET_OPTIONS = [
    OptionHelp(
        name="sharing",
        default="private",
        choices=["private", "shared"],
        help="one file set per worker (SpanFS) or one for all (FAST'18)",
    ),
]


def _count(name: str, default: int, most: int, text: str, least: int = 2) -> OptionHelp:
    return OptionHelp(name=name, default=default, least=least, most=most, help=text)


def _set_options(files: int, width: int, size: int) -> list[OptionHelp]:
    return [
        _count("files", files, _MOST_FILES, "files per file set, fewer if space is short"),
        _count("width", width, _MOST_FILES, "entries per directory"),
        _count("size", size, _MOST_BYTES, "mean file size in bytes", least=1),
        _count("append", 16384, _MOST_BYTES, "mean size of an append in bytes", least=1),
        *_SET_OPTIONS,
    ]


def _descriptor(
    name: str, title: str, operation: str, paper: str, setup: str, options: list[OptionHelp]
) -> Descriptor:
    return Descriptor(
        id=name,
        title=title,
        operation=operation,
        paper=paper,
        type="metadata",
        action="write",
        sharing="low",
        contention="journal and block allocation; with a shared file set, directories too",
        setup=setup,
        consumes=False,
        background=False,
        min_cores=1,
        partitions=True,
        modes=["buffered"],
        puts_off=True,
        defers_frees=True,
        options=options,
    )


VARMAIL = _descriptor(
    "varmail",
    "Varmail, after Filebench",
    "one step of: delete; create, append, fsync, close; open, read, append, fsync, close; "
    "open, read, close",
    "SpanFS (ATC'15) Figure 7(b); FAST'18 Table 1; ScaleLFS Table 2",
    "80% of each file set exists",
    _set_options(files=1000, width=1_000_000, size=16384),
)
FILESERVER = _descriptor(
    "fileserver",
    "Fileserver, after Filebench",
    "one step of: create, write, close; open, append, close; open, read, close; delete; stat",
    "SpanFS (ATC'15) Figure 7(a); FAST'18 Table 1; ScaleLFS Table 2",
    "80% of each file set exists",
    _set_options(files=10000, width=20, size=131072),
)
CATD = _descriptor(
    "catd",
    "catd: create, append, truncate, delete",
    "one file created, appended to and fsync'd, truncated or deleted (option phase)",
    "SpanFS (ATC'15) Figure 4",
    "an empty directory for each worker",
    [
        _count("files", 10000, _MOST_FILES, "files per worker, fewer if space is short"),
        OptionHelp(
            name="phase",
            default="append",
            choices=["create", "append", "truncate", "delete"],
            help="phase whose rate is the figure; all four run and are in the result",
        ),
    ],
)


def parse(text: str) -> dict[str, Any]:
    """The program's JSON object; AppError for an error in it or a phase without operations."""
    try:
        output: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise AppError(f"{_PROGRAM} printed no valid result: {text[-200:]}") from None
    if output["error"]:
        raise AppError(f"{output['personality']}: {output['error']}")
    idle = [name for name, phase in output["phases"].items() if not phase["ops"]]
    if idle:
        raise AppError(
            f"{output['personality']}: no operation completed in phase {', '.join(idle)}"
        )
    return output


class Personality(App):
    """One of the program's personalities."""

    unit = "ops"

    def __init__(self, descriptor: Descriptor, *, sliced: bool) -> None:
        self.descriptor = descriptor
        self.sliced = sliced

    def missing(self) -> str | None:
        """Nothing: it is built from our source."""
        return None

    def version(self) -> str:
        """Ours."""
        return f"fscale {__version__}"

    def run(
        self, site: Site, timing: Timing, options: Options, ready: Callable[[], None]
    ) -> AppResult:
        """Fill the file sets, warm up, measure."""
        files = self._files(site, options)
        argv = [str(build(_PROGRAM)), "--personality", self.descriptor.id]
        for directory in site.dirs:
            argv += ["--dir", str(directory)]
        argv += ["--cpus", cpu_list(site.cpus), "--files", str(files), "--seed", str(site.seed)]
        argv += ["--warmup", f"{timing.warmup:g}", "--duration", f"{timing.duration:g}"]
        for option in ("width", "size", "append"):
            argv += [f"--{option}", str(options[option])] if option in options else []
        argv += ["--shared"] if options.get("sharing") == "shared" else []
        if timing.turns:
            argv += ["--slice", f"{timing.turns.seconds:g}"]
            argv += ["--settle"] if timing.turns.settle else []
        name = str(options.get("phase", "all"))
        with Processes(site) as processes:
            text, edges = _go(processes, site, timing, argv, name, ready)
        output = parse(text)
        phase = output["phases"][name]
        if timing.turns:
            turns = [line.split() for line in text.splitlines() if line.startswith(_TURN)]
            usage = Usage(phase["seconds"], None, sum(float(turn[3]) for turn in turns))
        else:
            usage = between(edges[0], edges[1], (phase["start_ns"], phase["end_ns"]))
        return AppResult(
            amount=phase["ops"],
            unit=self.unit,
            seconds=phase["seconds"],
            usage=usage,
            commands=processes.commands,
            extra={
                "files": files,
                "phases": output["phases"],
                "mb_per_second": output["bytes"]
                / 1e6
                / sum(p["seconds"] for p in output["phases"].values()),
            },
        )

    def _files(self, site: Site, options: Options) -> int:
        sets = 1 if options.get("sharing") == "shared" else site.cores
        each = int(options.get("size", 4096)) + int(options.get("append", 0))
        return max(2, min(int(options["files"]), site.space // sets // (each * _SLACK)))


def _go(
    processes: Processes,
    site: Site,
    timing: Timing,
    argv: list[str],
    phase: str,
    ready: Callable[[], None],
) -> tuple[str, list[Edge]]:
    """Run the program; return its output, and the edges of the scored phase."""
    meter = Meter(site.cpus, site.cgroup)
    edges: list[Edge] = []
    lines: list[str] = []
    turns = timing.turns
    go_read, go_write = os.pipe()

    def watch(line: str) -> None:
        lines.append(line)
        if line == "ready":
            ready()
            os.write(go_write, b"g")
        elif turns and line.startswith(_TURN):
            os.write(turns.answers, f"{line.removeprefix(_TURN)}\n".encode())
        elif line == f"start {phase}":
            edges.append(meter.open())
        elif line == f"end {phase}":
            edges.append(meter.close())

    try:
        timeout = timing.warmup + timing.duration + 2 * timing.margin
        asked = turns.requests if turns else go_read
        return processes.run(argv, timeout=timeout, stdin=asked, watch=watch), edges
    except FileSystemFullError:
        raise
    except AppError:
        if (why := error_in_output(lines)) is None:
            raise
        raise AppError(f"{_PROGRAM}: {why}") from None
    finally:
        os.close(go_read)
        os.close(go_write)


APPS = [
    Personality(VARMAIL, sliced=True),
    Personality(FILESERVER, sliced=True),
    Personality(CATD, sliced=False),
]
