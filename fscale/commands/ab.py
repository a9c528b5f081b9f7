# SPDX-License-Identifier: GPL-2.0-only
"""`fscale ab`: measures both sides in alternation until each point has a verdict."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fscale.analysis.compare.settings import Settings
from fscale.commands.options.in_guest import suite_in_guest
from fscale.commands.options.judge import JudgeOptions
from fscale.commands.options.measure import MeasureOptions, recording
from fscale.commands.options.on import (
    AbOption,
    check_nodes,
    check_workers,
    engine_of,
    nodes_of,
    print_place,
)
from fscale.commands.options.output import OutputOptions
from fscale.commands.options.shared import AllOption, MinutesOption, ResultsOption
from fscale.model import catalogue
from fscale.model.bundle import bundle
from fscale.model.errors import Exit
from fscale.model.helptext import REPEATED
from fscale.model.limits import MOST_REPETITIONS, MOST_SEED
from fscale.model.terminal import say
from fscale.model.variant import Variant, parse
from fscale.runner.dry import print_line
from fscale.runner.signals import Signals
from fscale.vm import loads
from fscale.vm.cli import guest_files, show
from fscale.vm.options import GuestOptions
from fscale.vm.steps import Steps

if TYPE_CHECKING:
    from fscale.ab.plan import Plan
    from fscale.analysis.formats.comparison import Outputs

_EPILOG = """
More examples:

    fscale ab --base xfs --new xfs:mount=wsync --cores 1,2 --max-minutes 20 --output results/wsync
    fscale ab --base ext4 --new ext4:mount=nodelalloc --workload MWCL --whole --output results/w
    fscale ab --base ext4 --new 'ext4:mkfs=-O ^has_journal' --repetitions 10 --output results/nj
    fscale ab --base ext4 --new ext4:set=/proc/sys/vm/dirty_background_ratio=1 --output results/d
    fscale ab --base xfs --new xfs:mount=wsync --on slurm:PARTITION --output results/node
    fscale ab --base kernel:6.1 --new kernel:6.12 --workload MWCL --output results/guests

A side is FS-OR-FILE[:PARTITIONS][:mount=OPTIONS][:mkfs=ARGUMENTS][:set=FILE=VALUE][:binary=FILE].

mount= and mkfs= add to the options and arguments that the file system has in its TOML file. set=
writes VALUE to a file below /sys or /proc/sys while the file system is mounted and restores it
afterwards; {name} in it stands for the device. binary= is another microbenchmark. A side with
:kernel=KERNEL or :module=FILE, or of the form kernel:KERNEL, is measured in a guest.
"""

BaseOption = Annotated[
    str,
    typer.Option(
        metavar="SIDE", help="Side A, the baseline, such as ext4; the syntax is described below."
    ),
]
NewOption = Annotated[
    str,
    typer.Option(metavar="SIDE", help="Side B, which is judged, such as ext4:mount=data=journal."),
]
FixedOption = Annotated[
    int | None,
    typer.Option(
        min=2,
        max=MOST_REPETITIONS,
        metavar="N",
        help="Fixed number of repetitions per side, or of pairs in slices; disables early "
        "stopping. In guests a repetition is a boot.",
        rich_help_panel=REPEATED,
    ),
]
SlicesOption = Annotated[
    bool | None,
    typer.Option(
        "--slices/--whole",
        help="--slices: mount both sides at once and alternate between them every few "
        "milliseconds. --whole: alternate whole repetitions. Default: slices where both sides "
        "support them.",
        rich_help_panel=REPEATED,
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the commands of the first round and exit.")
]


def warn_ignored_duration(plan: "Plan", duration: float | None) -> None:
    """Print which workloads ignore --duration because they are measured in slices."""
    sliced = dict.fromkeys(p.base.workload for p in plan.points if p.slicing)
    if duration is not None and sliced:
        say(
            f"note: --duration has no effect on {', '.join(sliced)}, measured in slices; --whole "
            "measures whole repetitions",
            error=True,
        )


def files_for_guest(
    suite: Path, filesystems: list[Path] | None, *sides: Variant
) -> tuple[dict[str, Path], str]:
    """Return the files to copy into guests, and the name of the suite there.

    Raises:
        FscaleError: the TOML file of a side is invalid.
    """
    own = [side.own_file for side in sides if side.own_file]
    for side in sides:
        if side.own_file:
            catalogue.load_filesystem(side.filesystem)  # reports errors before a boot
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
    on: str | None = None,
) -> Settings:
    """Compare two guests; `given` are options of `fscale run`, without the suite.

    `filesystems` are TOML files of the user's; `on` is an engine whose machines boot guests that
    count instructions. Returns the settings to judge by, which may have
    fewer metrics if `bisecting`. With `options.dry_run`, prints the boots of the first round and
    exits. Raises the errors of `fscale.ab.guests.execute`.
    """
    from fscale.ab.guest_plan import make  # noqa: PLC0415 - imports the statistics
    from fscale.ab.guests import execute  # noqa: PLC0415
    from fscale.ab.line_progress import LineProgress  # noqa: PLC0415

    steps = Steps(Console(stderr=True))
    given = recording(given, settings.metrics)
    measured = suite_in_guest(suite, given, filesystems or [])
    files, inside = files_for_guest(suite, filesystems, base, new)
    own, arguments = loads.files_for_guest(given)
    with engine_of(on) as engine:
        source = make(
            base,
            new,
            [inside, *arguments],
            suite=measured,
            slices=slices,
            files=files | own,
            options=options,
            output=output,
            seed=seed,
            settings=settings,
            repetitions=repetitions,
            steps=steps,
            bisecting=bisecting,
            engine=engine,
        )
        if options.dry_run:
            print_place(on, "each pair of guests")
            for boot in source.first_round():
                show(boot, source.plan.emulator)
            print_line("# further rounds follow until all is decided")
            raise typer.Exit
        progress = execute(source, 60 * minutes, LineProgress(steps, source.plan.settings.metrics))
    for reason in progress.given_up.values():
        steps.note(f"gave up on a point: {reason}")
    if progress.out_of_time:
        steps.note(f"time limit reached (--max-minutes); {len(progress.open)} points are undecided")
    return source.plan.settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ab", epilog=_EPILOG)(_ab)


@bundle("measured", MeasureOptions)
@bundle("judged", JudgeOptions)
@bundle("written", OutputOptions)
def _ab(
    context: typer.Context,
    base: BaseOption,
    new: NewOption,
    output: ResultsOption,
    *,
    repetitions: FixedOption = None,
    max_minutes: MinutesOption = 30,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_SEED,
            metavar="N",
            help="Random seed for run order and workloads. Default: in guests 1, else a random "
            "one, which a resumed run keeps.",
            rich_help_panel=REPEATED,
        ),
    ] = None,
    slices: SlicesOption = None,
    everything: AllOption = False,
    on: AbOption = None,
    dry_run: DryRunOption = False,
    measured: MeasureOptions,
    judged: JudgeOptions,
    written: OutputOptions,
) -> None:
    """Measure two variants of a file system in alternation and judge the difference.

    Example: fscale ab --base ext4 --new ext4:mount=data=journal --output results/journal

    The sides are interleaved as A B B A, so that drift of the machine affects both equally. A point
    is measured until it has a verdict or the time is up. The false discovery rate accounts for
    these repeated tests (docs/design/statistics.md).

    Exit codes: 0: no regression. 1: a point is slower, or fails in NEW only. 2: wrong usage, or
    the sides cannot be compared. 3: interrupted; the same command resumes.
    """
    from fscale.ab.methods import method_of, refuse_unsupported  # noqa: PLC0415
    from fscale.ab.plan import make  # noqa: PLC0415
    from fscale.ab.run import execute, preview  # noqa: PLC0415
    from fscale.ab.tasks import Asked, measure_on  # noqa: PLC0415

    settings, outputs = judged.settings, written.outputs
    sides = parse(base), parse(new)
    in_guests = any(side.of_guest for side in sides)
    method = method_of(in_guests=in_guests, slices=slices)
    refuse_unsupported(context, method)
    method.refuse_others(*sides)
    (check_workers if in_guests else check_nodes)(on)
    if in_guests:
        measure_in_guests(
            *sides,
            measured.suite,
            measured.in_guest,
            slices=bool(slices),
            options=replace(measured.guest, dry_run=dry_run),
            output=output,
            seed=1 if seed is None else seed,
            settings=settings,
            minutes=max_minutes,
            repetitions=repetitions or 0,
            on=on,
        )
    else:
        request = measured.request(output, seed, settings.metrics)

        def plan() -> "Plan":
            made = make(request, *sides, settings, repetitions or 0, slices=slices)
            warn_ignored_duration(made, measured.duration)
            return made

        if dry_run:
            print_place(on, "the comparison")
            preview(plan(), print_line)
            return
        if on is not None:
            asked = Asked(
                *sides, settings, repetitions or 0, slices, 60 * max_minutes, measured.wait
            )
            with Signals().installed(), nodes_of(on) as engine:
                measure_on(engine, request, asked)
        else:
            execute(plan, 60 * max_minutes, measured.wait)
    judge(output, settings, outputs, everything)


def judge(output: Path, settings: Settings, outputs: "Outputs", everything: bool) -> None:
    """Judge a paired run and write the outputs; exits with 1 if there is a regression."""
    from fscale.analysis.compare.compare import compare  # noqa: PLC0415
    from fscale.analysis.compare.sides import open_sides  # noqa: PLC0415
    from fscale.analysis.formats.comparison import write  # noqa: PLC0415

    sides = open_sides(output, None)
    comparison = compare(sides, settings)
    write(comparison, outputs, sides, everything)
    if comparison.regressed:
        raise typer.Exit(Exit.FAILED)
