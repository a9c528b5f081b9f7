# SPDX-License-Identifier: GPL-2.0-only
"""`fscale noise`: the smallest change that is detectable on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscale.commands.options.booted import ControlOptions, compare_boots
from fscale.commands.options.bundle import bundle
from fscale.commands.options.completion import complete_filesystems
from fscale.commands.options.given import refuse_given
from fscale.commands.options.helptext import JUDGING, REPEATED
from fscale.commands.options.judge import fraction_option
from fscale.commands.options.kinds import number
from fscale.commands.options.measure import PairedOptions
from fscale.commands.options.on import BootingOption, refuse_machine
from fscale.commands.options.paired import (
    DryRunOption,
    SlicesOption,
    warn_ignored_duration,
)
from fscale.commands.options.shared import (
    WHOLE_MINUTES,
    JsonFlag,
    MinutesOption,
    ResultsOption,
    RunSeedOption,
)
from fscale.model.errors import Exit
from fscale.model.limits import MOST_REPETITIONS
from fscale.model.tables import Column, Row, Table
from fscale.model.terminal import only_ascii, print_line, terminal
from fscale.model.variant import parse
from fscale.model.words import plural
from fscale.runner.progress import duration
from fscale.runner.session import this_machine_held

if TYPE_CHECKING:
    from fscale.analysis.compare.noise import NoiseReport, PointNoise

_EPILOG = """
More examples:

    fscale noise --fs tmpfs --repetitions 20 --budget 10 --wanted 0.05 --output results/noise
    fscale noise --fs ext4:kernel=DIR --on ssh:testbox --wanted 0.05 --output results/boots
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("noise", epilog=_EPILOG)(_noise)


@bundle("measured", PairedOptions, "fs")
@bundle("controlled", ControlOptions)
def _noise(
    context: typer.Context,
    text: Annotated[
        str,
        typer.Option(
            "--fs",
            metavar="SIDE",
            help="File system that is measured as both sides, such as ext4; as for `fscale ab`.",
            autocompletion=complete_filesystems,
        ),
    ],
    output: ResultsOption = Path("results/DATE-noise"),
    *,
    repetitions: Annotated[
        int,
        number(8, MOST_REPETITIONS, "Repetitions per side, or pairs in slices.", REPEATED),
    ] = 10,
    max_minutes: MinutesOption = 30,
    budget: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=WHOLE_MINUTES,
            metavar="MINUTES",
            help="Duration of a later comparison, in minutes, to predict the smallest change that "
            "it would detect.",
            rich_help_panel=JUDGING,
        ),
    ] = 30,
    wanted: Annotated[
        float,
        fraction_option("Relative change that has to be detectable within --budget."),
    ] = 0.10,
    seed: RunSeedOption = None,
    slices: SlicesOption = None,
    json_output: JsonFlag = False,
    on: BootingOption = None,
    dry_run: DryRunOption = False,
    measured: PairedOptions,
    controlled: ControlOptions,
) -> None:
    """Measure a file system against itself: how small a change can this machine detect?

    Example: fscale noise --fs ext4 --workload DRBL,MWCL --output results/noise

    The table shows the spread, the drift, CPU time taken by the hypervisor (steal) and by other
    processes, and the smallest change that a comparison would detect. With --on ssh:HOST, each
    repetition is a boot of the side's kernel there, and a line tells how many boots --wanted needs.

    Exit codes: 0: a change of --wanted is detectable at all points within --budget. 1: at some
    point it is not. 2: wrong usage, or this machine cannot run the suite. 3: interrupted; the same
    command resumes.
    """
    from fscale.ab.methods import method_of  # noqa: PLC0415
    from fscale.ab.plan import Plan, make  # noqa: PLC0415
    from fscale.ab.run import execute, preview  # noqa: PLC0415
    from fscale.analysis.compare.noise import measure_noise  # noqa: PLC0415
    from fscale.analysis.compare.settings import Settings  # noqa: PLC0415
    from fscale.analysis.compare.sides import open_sides  # noqa: PLC0415

    side, settings = parse(text), Settings()
    method = method_of(in_guests=on is not None and side.of_guest, slices=slices, on=on)
    if not side.of_guest:
        refuse_machine(on)
    refuse_given(context, method.unsupported, method.title)
    method.refuse_others(side)
    if on is not None:
        compare_boots(
            side,
            side,
            measured,
            on=on,
            controls=controlled.controls,
            output=output,
            seed=seed,
            settings=settings,
            repetitions=repetitions,
            seconds=60 * max_minutes,
        )
    else:
        request = measured.paired_request(output, seed, ())

        def plan() -> Plan:
            made = make(request, side, side, settings, repetitions, slices=slices)
            warn_ignored_duration(made, measured.duration)
            return made

        if dry_run:
            preview(plan(), print_line)
            return
        with this_machine_held(measured.wait) as signals:
            execute(plan(), signals, 60 * max_minutes)
    report = measure_noise(open_sides(output, None), settings, budget, wanted)
    if json_output:
        typer.echo(report.model_dump_json(by_alias=True, indent=1))
    else:
        show(report)
    if report.blind():
        raise typer.Exit(Exit.FAILED)


def show(report: "NoiseReport") -> None:
    """Print the answer, then what each point would see."""
    console = terminal(ascii_only=only_ascii())
    budget = f"in {report.budget_minutes:g} min"
    columns = (
        *(Column("point"), Column("metric"), Column("n=10", 1, True)),
        *(Column(budget, 0, True), Column("n", 6, True), Column("CV", 3, True)),
        *(Column("robust", 4, True), Column("aligned", 4, True), Column("drift", 2, True)),
        *(Column("correlation", 5, True), Column("A/A", 1)),
    )
    console.print(f"fscale: {_sentence(report)}", style="bold")
    console.print(Table(columns, [Row(_cells(p)) for p in report.points]))
    if report.boot_seconds is not None:
        console.print(_boots(report, report.boot_seconds))
    disturbed = (
        f"{_known(report.disturbed, 'd')} of {report.repetitions} repetitions were disturbed"
    )
    if any(p.between_pairs is not None for p in report.points):
        disturbed += " (in slices both sides alike)"
    console.print(
        f"n=10, {budget}: the smallest change that 10 repetitions per side, or as many as fit "
        f"{report.budget_minutes:g} minutes, would detect"
    )
    console.print(
        f"steal {_known(report.steal, '.2%')} (at worst {_known(report.worst_steal, '.2%')}); "
        f"other processes used {_known(report.others_cpus, '.2f')} CPUs; {disturbed}"
    )


def _sentence(report: "NoiseReport") -> str:
    """Whether a later comparison would see the wanted change, and what to do if not."""
    blind, change = report.blind(), f"a change of {report.wanted:.0%}"
    time = f"a comparison of {report.budget_minutes:g} minutes"
    if not blind:
        return f"{time} would detect {change} at every point"
    worst = max(blind, key=lambda p: p.smallest_in_budget)
    return (
        f"too noisy: {time} would not detect {change} in {len(blind)} of "
        f"{plural(len(report.points), 'test')}; the worst, {worst.metric} of "
        f"{worst.subject.name}, sees {worst.smallest_in_budget:.0%}; reduce other load, raise "
        "--budget, or do not rely on them"
    )


def _boots(report: "NoiseReport", seconds: float) -> str:
    """How many boots a comparison needs for the wanted change, and how long it takes."""
    needed = [point.boots_needed for point in report.points]
    change = f"a change of {report.wanted:.0%}"
    most = max((n or MOST_REPETITIONS + 1 for n in needed), default=0)
    if most > MOST_REPETITIONS:
        return f"{change} needs more than {MOST_REPETITIONS} boots per side"
    return (
        f"{change} needs {most} boots per side at every point: {duration(2 * most * seconds)} with "
        f"{duration(seconds)} per boot"
    )


def _cells(point: "PointNoise") -> list[str]:
    return [
        point.subject.name,
        point.metric,
        f"{point.smallest_change:.1%}",
        f"{point.smallest_in_budget:.1%}",
        str(point.repetitions),
        *(f"{x:.1%}" for x in (point.cv, point.robust_cv, point.aligned_cv)),
        f"{point.drift:+.1%}",
        f"{point.neighbour_correlation:+.2f}",
        point.verdict,
    ]


def _known(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)
