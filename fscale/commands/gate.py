# SPDX-License-Identifier: GPL-2.0-only
"""`fscale gate`: compares instructions and shared cache lines per operation."""

from pathlib import Path
from typing import Annotated

import typer

from fscale.ab.methods import PairedMethod
from fscale.analysis.compare.settings import Settings
from fscale.commands.options.bundle import bundle
from fscale.commands.options.completion import complete_workloads
from fscale.commands.options.helptext import MEASURED, REPEATED
from fscale.commands.options.kinds import number
from fscale.commands.options.on import engine_of, print_place
from fscale.commands.options.output import OutputOptions, judge_paired
from fscale.commands.options.paired import BaseOption, NewOption
from fscale.commands.options.shared import ResultsOption
from fscale.commands.options.simulated import SimulationOptions
from fscale.model.limits import MOST_REPETITIONS
from fscale.model.terminal import terminal
from fscale.model.variant import parse
from fscale.runner.signals import Signals
from fscale.sim import campaign, sweep
from fscale.sim.plan import fixed
from fscale.vm.steps import Steps

_EPILOG = """
More examples:

    fscale gate --base ext4:kernel=6.1 --new ext4:kernel=6.12 --workload MWCL --output results/k
    fscale gate --base ext4 --new ext4:mount=data=journal --workload DWAL --output results/journal

A side is FS-OR-FILE[:mount=OPTIONS][:mkfs=ARGUMENTS][:kernel=KERNEL[:modules=PATH]][:module=FILE].
KERNEL and PATH are as --kernel and --modules of `fscale vm run`; a side without has bookworm.
"""


@bundle("simulated", SimulationOptions, cores="4", memory="2G")
@bundle("written", OutputOptions, "fail_undecided")
def _gate(
    base: BaseOption,
    new: NewOption,
    output: ResultsOption = Path("results/DATE-gate"),
    workload: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Workloads, separated by commas (`fscale list workloads`).",
            autocompletion=complete_workloads,
            rich_help_panel=MEASURED,
        ),
    ] = "DRBL,DWOL,MRPL,MWCL,MWUL,MWRL",
    seeds: Annotated[
        int,
        number(
            3,
            MOST_REPETITIONS,
            "Boots per side, each with a random seed of its own. With fewer than 5, lines that "
            "only the layout of the heap shares are not found.",
            REPEATED,
        ),
    ] = 5,
    *,
    simulated: SimulationOptions,
    written: OutputOptions,
) -> None:
    """Simulate two sides and compare instructions and shared cache lines per operation.

    Example: fscale gate --base ext4 --new ext4:kernel=my.deb --workload MWCM --output results/gate

    Rates are not judged, so the load of this machine does not matter. The report names the cache
    lines that cause a regression and the functions that access them, and says whether CPUs share
    the same word or only this layout puts words together. Sharing shows from 4 cores on.

    Exit codes: 0: no regression. 1: an operation takes more instructions or cache lines, newly
    shares a line, or fails in NEW. 2: wrong usage, or no point can be judged because BASE fails.
    3: interrupted; the same command resumes.
    """
    from fscale.ab.simulated import Simulated, execute, side_directory  # noqa: PLC0415 - the statistics take seconds to load

    outputs = written.outputs
    sides = {"A": parse(base), "B": parse(new)}
    PairedMethod.SIMULATED.refuse_others(*sides.values())
    steps = Steps(terminal(error=True))
    prepared = {
        name: sweep.prepare(
            sweep.of_side(
                one,
                simulated.sweep(
                    side_directory(output, name),
                    [],
                    workload,
                    repetitions=seeds,
                    windows=fixed(5, 512),
                ),
            ),
            steps,
        )
        for name, one in sides.items()
    }
    if simulated.dry_run:
        print_place(simulated.on, "the boots")
        for one in prepared.values():
            campaign.show(one, simulated.jobs)
        return
    with Signals().installed(), engine_of(simulated.on) as engine:
        texts = {name: side.text for name, side in sides.items()}
        execute(Simulated(output, prepared, texts, simulated.jobs, engine))
    judge_paired(output, Settings(), outputs, everything=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gate", epilog=_EPILOG)(_gate)
