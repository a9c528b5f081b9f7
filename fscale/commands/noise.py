# SPDX-License-Identifier: GPL-2.0-only
"""`fscale noise`: what change could be seen on this machine at all?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fscale.commands.ab import DryRunOption, SlicesOption, say_unheeded_duration
from fscale.commands.list import complete_filesystems
from fscale.commands.options.measure import MeasureOptions
from fscale.commands.run import RunSeedOption
from fscale.model.bundle import bundle
from fscale.model.errors import Exit
from fscale.model.limits import MOST_MINUTES, MOST_REPETITIONS
from fscale.model.terminal import terminal
from fscale.model.variant import parse
from fscale.runner.dry import tell
from fscale.system.outputs import directory_to_write

if TYPE_CHECKING:
    from analysis.compare.noise import NoiseReport

_EPILOG = """
Examples:\n\n
fscale noise --fs ext4 --workload DRBL,MWCL,MWRL --output results/noise\n\n
fscale noise --fs tmpfs --repetitions 20 --budget 10 --wanted 0.05 --output results/noise
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("noise", epilog=_EPILOG)(_noise)


@bundle("measured", MeasureOptions)
def _noise(
    context: typer.Context,
    fs: Annotated[
        str,
        typer.Option(
            help="One side, as for `fscale ab`; both sides are this.",
            autocompletion=complete_filesystems,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            callback=directory_to_write,
            help="Results directory; an interrupted run in it is resumed.",
        ),
    ],
    *,
    repetitions: Annotated[
        int, typer.Option(min=8, max=MOST_REPETITIONS, help="Repetitions per side.")
    ] = 10,
    max_minutes: Annotated[
        float, typer.Option(min=0.1, max=MOST_MINUTES, help="Stop after this many minutes.")
    ] = 30,
    budget: Annotated[
        float,
        typer.Option(min=0.1, max=MOST_MINUTES, help="Minutes that a later comparison may take."),
    ] = 30,
    wanted: Annotated[
        float, typer.Option(min=0.001, max=0.9, help="Relative change that must be visible.")
    ] = 0.10,
    seed: RunSeedOption = None,
    slices: SlicesOption = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    dry_run: DryRunOption = False,
    measured: MeasureOptions,
) -> None:
    """Measure A against A and say what this machine can show: spread, drift, steal, others.

    Exit code 1 when a change of --wanted would not show within --budget on some point.
    """
    from analysis.compare.noise import measure_noise  # noqa: PLC0415
    from analysis.compare.settings import Settings  # noqa: PLC0415
    from analysis.compare.sides import open_sides  # noqa: PLC0415
    from fscale.ab.plan import Plan, make  # noqa: PLC0415
    from fscale.ab.run import execute, preview  # noqa: PLC0415
    from fscale.ab.ways import refuse_unheeded, way_of  # noqa: PLC0415

    way, side = way_of(in_guests=False, slices=slices), parse(fs)
    refuse_unheeded(context, way)
    way.refuse_others(side)
    settings = Settings()
    request = measured.request(output, seed)

    def plan() -> Plan:
        made = make(request, side, side, settings, repetitions, slices=slices)
        say_unheeded_duration(made, measured.duration)
        return made

    if dry_run:
        preview(plan(), tell)
        return
    execute(plan, 60 * max_minutes, measured.wait)
    report = measure_noise(open_sides(output, None), settings, budget, wanted)
    if json_output:
        typer.echo(report.model_dump_json(by_alias=True, indent=1))
    else:
        _show(report)
    if report.blind():
        raise typer.Exit(Exit.FAILED)


def _show(report: "NoiseReport") -> None:
    console = terminal()
    if not console.is_terminal:
        console.width = 160
    table = Table(box=None, pad_edge=False)
    for name in ("point", "metric"):
        table.add_column(name)
    for name in (
        "n",
        "CV",
        "robust",
        "aligned",
        "drift",
        "correlation",
        "seen by 10",
        f"in {report.budget_minutes:g} min",
        "A/A",
    ):
        table.add_column(name, justify="right")
    for p in report.points:
        table.add_row(
            p.subject.name,
            p.metric,
            str(p.repetitions),
            *(f"{x:.1%}" for x in (p.cv, p.robust_cv, p.aligned_cv)),
            f"{p.drift:+.1%}",
            f"{p.neighbour_correlation:+.2f}",
            f"{p.smallest_change:.1%}",
            f"{p.smallest_in_budget:.1%}",
            p.verdict,
        )
    console.print(table)
    console.print(
        f"steal {_known(report.steal, '.2%')} (at worst {_known(report.worst_steal, '.2%')}); "
        f"others used {_known(report.others_cpus, '.2f')} CPUs; {report.disturbed} of "
        f"{report.repetitions} repetitions were disturbed"
    )
    blind = report.blind()
    if blind:
        console.print(
            f"too noisy: a change of {report.wanted:.0%} would not show within "
            f"{report.budget_minutes:g} minutes on {len(blind)} of {len(report.points)}; quieten "
            "the machine, give more time, or trust only the metrics that are not among them:",
            soft_wrap=True,
        )
        for p in blind:
            console.print(f"  {p.subject.name}, {p.metric}", markup=False)
    else:
        console.print(f"a change of {report.wanted:.0%} would show on every point")


def _known(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)
