# SPDX-License-Identifier: GPL-2.0-only
"""Options that name a suite, override its keys, or say where it is measured."""

from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.options.completion import (
    complete_cores,
    complete_filesystems,
    complete_media,
    complete_settings,
    complete_suites,
    complete_workloads,
)
from fscale.commands.options.helptext import MEASURED, PLACE

_SUITE = "a TOML file, or the name of a suite (`fscale list suites`)."
_OF_SUITE = "Default: those of the suite."
FILESYSTEMS = (
    "File systems, separated by commas: names (`fscale list filesystems`) or TOML files. "
    "FS:mount=OPTIONS and FS:mkfs=ARGUMENTS are merged into the options of the TOML file. Braces "
    "make a sweep, such as ext4:mount=commit={1,5}."
)
GuestFilesystemsOption = Annotated[
    str,
    typer.Option(
        metavar="FS,...",
        help=FILESYSTEMS,
        autocompletion=complete_filesystems,
        rich_help_panel=MEASURED,
    ),
]

SuiteArgument = Annotated[
    Path, typer.Argument(help=f"Suite: {_SUITE}", autocompletion=complete_suites)
]
SuiteOption = Annotated[
    Path,
    typer.Option(
        metavar="SUITE",
        help=f"Suite that defines the points to measure: {_SUITE}",
        autocompletion=complete_suites,
        rich_help_panel=MEASURED,
    ),
]
FilesystemsOption = Annotated[
    str | None,
    typer.Option(
        "--fs",
        metavar="FS,...",
        help=f"{FILESYSTEMS} FS:aged=PROFILE was filled and used before. {_OF_SUITE}",
        autocompletion=complete_filesystems,
        rich_help_panel=MEASURED,
    ),
]
WorkloadOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Workloads, separated by commas: names (`fscale list workloads`), or TOML files that "
        f"describe a load of your own. {_OF_SUITE}",
        autocompletion=complete_workloads,
        rich_help_panel=MEASURED,
    ),
]
CoresOption = Annotated[
    str | None,
    typer.Option(
        metavar="N,...",
        help="Core counts, separated by commas: numbers, ranges such as 1-8 or 2-16:2 (every "
        "second), shares of the usable CPUs such as 50%; or a preset: powers (of two), topology "
        "(also each full socket) or all. A count that the machine lacks is refused; one in a "
        f"suite's file is left out with a warning. {_OF_SUITE}",
        autocompletion=complete_cores,
        rich_help_panel=MEASURED,
    ),
]
MediaOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help=f"Media, separated by commas (`fscale list media`). {_OF_SUITE}",
        autocompletion=complete_media,
        rich_help_panel=MEASURED,
    ),
]
ModeOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODE,...",
        help=f"I/O modes, separated by commas: buffered, direct, dontcache. {_OF_SUITE}",
        rich_help_panel=MEASURED,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override any key of the suite, with the value as in TOML, such as latency=true; "
        "repeatable.",
        autocompletion=complete_settings,
        rich_help_panel=MEASURED,
    ),
]
LoadOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE,...",
        help="Set an option of all workloads that have it, or of one as WORKLOAD.NAME=VALUE, such "
        "as MRPL.access=stat; repeatable. Several values, such as DWAL.block=4k,16k, make a "
        "sweep.",
        rich_help_panel=MEASURED,
    ),
]
DeviceOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Format and measure on this block device, named by a path below /dev/disk/by-id, "
        "by-path, by-partuuid or by-diskseq.",
        rich_help_panel=PLACE,
    ),
]
YesFormatOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Allow formatting of devices that fscale has not labelled before; their content is "
        "lost. NAME is the last part of the device's path.",
        rich_help_panel=PLACE,
    ),
]
DirectoryOption = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        metavar="DIR",
        help="Measure in this existing directory: no mkfs, no mount, no root needed.",
        rich_help_panel=PLACE,
    ),
]
BinaryOption = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        help="Microbenchmark program to run.",
        show_default="build/microbench/fscale-bench",
        rich_help_panel=PLACE,
    ),
]
