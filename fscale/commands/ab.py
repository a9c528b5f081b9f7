# SPDX-License-Identifier: GPL-2.0-only
"""`fscale ab`: both sides interleaved on this machine, until the data decide."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from analysis.compare.settings import Settings
from fscale.commands.compare import AllOption
from fscale.commands.options.judge import JudgeOptions
from fscale.commands.options.measure import MeasureOptions
from fscale.commands.options.output import OutputOptions
from fscale.commands.run import RunSeedOption
from fscale.model import catalogue
from fscale.model.bundle import bundle
from fscale.model.errors import Exit
from fscale.model.limits import MOST_MINUTES, MOST_REPETITIONS
from fscale.model.terminal import say
from fscale.model.variant import Variant, parse
from fscale.runner.dry import tell
from fscale.system.outputs import directory_to_write
from vm.cli import guest_files
from vm.options import GuestOptions
from vm.steps import Steps

if TYPE_CHECKING:
    from analysis.verdicts.outputs import Outputs
    from fscale.ab.plan import Plan

_EPILOG = """
Examples:\n\n
fscale ab --base ext4 --new ext4:mount=data=journal --workload DWSL --output results/journal\n\n
fscale ab --base xfs --new xfs:mount=wsync --cores 1,2 --max-minutes 20 --output results/wsync\n\n
fscale ab --base ext4 --new ext4:mount=nodelalloc --workload MWCL --whole --output results/w\n\n
fscale ab --base ext4 --new 'ext4:mkfs=-O ^has_journal' --repetitions 10 --output results/nj\n\n
fscale ab --base ext4 --new ext4:set=/proc/sys/vm/dirty_background_ratio=1 --output results/d\n\n
fscale ab --base kernel:6.1 --new kernel:6.12 --workload MWCL --output results/guests\n\n
A side is FS-OR-FILE[:PARTITIONS][:mount=OPTIONS][:mkfs=ARGUMENTS][:set=FILE=VALUE][:binary=FILE].
Options and arguments are merged into those of the file system; set= writes a file below /sys or
/proc/sys while it is mounted ({name} in it stands for the device) and puts it back; binary= is
another microbenchmark. With [:kernel=KERNEL][:module=FILE], or as kernel:KERNEL, it is measured in
a guest.
"""

SlicesOption = Annotated[
    bool | None,
    typer.Option(
        "--slices/--whole",
        help="Mount both sides at once and switch between them every few milliseconds, or measure "
        "whole repetitions in turn. Default: slices where both sides support them.",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the commands of the first round and exit.")
]


def say_unheeded_duration(plan: "Plan", duration: float | None) -> None:
    """Say of which points a duration is not, as they take turns."""
    sliced = dict.fromkeys(p.base.workload for p in plan.points if p.slicing)
    if duration is not None and sliced:
        say(
            f"note: --duration is not of {', '.join(sliced)}: what takes turns works as long as "
            "they take; --whole measures whole repetitions",
            error=True,
        )


def handed_in(
    suite: Path, filesystems: list[Path] | None, *sides: Variant
) -> tuple[dict[str, Path], str]:
    """The files that guests get, and the suite as its name is in there; FscaleError."""
    own = [side.own_file for side in sides if side.own_file]
    for side in sides:
        if side.own_file:
            catalogue.load_filesystem(side.filesystem)  # what is wrong is said before a boot
    return guest_files(suite, list(dict.fromkeys([*(filesystems or []), *own])))


def measure_in_guests(
    base: Variant,
    new: Variant,
    suite: Path,
    given: Sequence[str],
    *,
    slices: bool,
    options: GuestOptions,
    output: Path,
    seed: int,
    settings: Settings,
    minutes: float,
    repetitions: int = 0,
    filesystems: list[Path] | None = None,
    bisecting: bool = False,
) -> Settings:
    """Compare two guests; `given` are options of `fscale run`, without the suite.

    `filesystems` are TOML files of the user's. Returns the settings to judge by, which may have
    fewer metrics where it is `bisecting`. Raises what `fscale.ab.guests.execute` does.
    """
    from fscale.ab.guest_plan import make  # noqa: PLC0415 - it brings in the statistics
    from fscale.ab.guests import execute  # noqa: PLC0415
    from fscale.ab.told import Told  # noqa: PLC0415

    steps = Steps(Console(stderr=True))
    files, inside = handed_in(suite, filesystems, base, new)
    source = make(
        base,
        new,
        [inside, *given],
        slices=slices,
        files=files,
        options=options,
        output=output,
        seed=seed,
        settings=settings,
        repetitions=repetitions,
        steps=steps,
        bisecting=bisecting,
    )
    progress = execute(source, 60 * minutes, Told(steps))
    for reason in progress.given_up.values():
        steps.note(f"given up: {reason}")
    if progress.out_of_time:
        steps.note(f"the time is spent; {len(progress.open)} points are undecided")
    return source.plan.settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ab", epilog=_EPILOG)(_ab)


@bundle("measured", MeasureOptions)
@bundle("judged", JudgeOptions)
@bundle("written", OutputOptions)
def _ab(
    context: typer.Context,
    base: Annotated[str, typer.Option(help="Side A, as described below.")],
    new: Annotated[str, typer.Option(help="Side B, in the same way.")],
    output: Annotated[
        Path,
        typer.Option(
            callback=directory_to_write,
            help="Results directory; an interrupted run in it is resumed.",
        ),
    ],
    *,
    repetitions: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST_REPETITIONS,
            help="Fixed repetitions per side; disables early stopping.",
        ),
    ] = None,
    max_minutes: Annotated[
        float, typer.Option(min=0.1, max=MOST_MINUTES, help="Stop after this many minutes.")
    ] = 30,
    seed: RunSeedOption = None,
    slices: SlicesOption = None,
    everything: AllOption = False,
    dry_run: DryRunOption = False,
    measured: MeasureOptions,
    judged: JudgeOptions,
    written: OutputOptions,
) -> None:
    """Compare two variants of a file system, interleaved as A B B A.

    Both sides are measured until each point is decided or the time is up; a decided point is not
    measured again. The error rates account for the repeated looks at the data
    (docs/design/statistics.md). Exit codes are those of `fscale compare`.
    """
    from fscale.ab.plan import make  # noqa: PLC0415
    from fscale.ab.run import execute, preview  # noqa: PLC0415
    from fscale.ab.ways import refuse_unheeded, way_of  # noqa: PLC0415

    settings, outputs = judged.settings, written.outputs
    sides = parse(base), parse(new)
    in_guests = any(side.of_guest for side in sides)
    way = way_of(in_guests=in_guests, slices=slices)
    refuse_unheeded(context, way)
    way.refuse_others(*sides)
    if in_guests:
        measure_in_guests(
            *sides,
            measured.suite,
            measured.in_guest,
            slices=bool(slices),
            options=measured.guest,
            output=output,
            seed=1 if seed is None else seed,
            settings=settings,
            minutes=max_minutes,
            repetitions=repetitions or 0,
        )
    else:
        request = measured.request(output, seed)

        def plan() -> "Plan":
            made = make(request, *sides, settings, repetitions or 0, slices=slices)
            say_unheeded_duration(made, measured.duration)
            return made

        if dry_run:
            preview(plan(), tell)
            return
        execute(plan, 60 * max_minutes, measured.wait)
    judge(output, settings, outputs, everything)


def judge(output: Path, settings: Settings, outputs: "Outputs", everything: bool) -> None:
    """Judge a paired run, write what was asked for, and end with 1 where something is worse."""
    from analysis.compare.compare import compare  # noqa: PLC0415
    from analysis.compare.sides import open_sides  # noqa: PLC0415
    from analysis.verdicts.outputs import give  # noqa: PLC0415

    sides = open_sides(output, None)
    comparison = compare(sides, settings)
    give(comparison, outputs, sides, everything)
    if comparison.regressed:
        raise typer.Exit(Exit.FAILED)
