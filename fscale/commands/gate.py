# SPDX-License-Identifier: GPL-2.0-only
"""`fscale gate`: compares instructions and shared cache lines per operation."""

from typing import Annotated

import typer

from fscale.ab.methods import Method
from fscale.analysis.compare.settings import Settings
from fscale.commands.ab import BaseOption, NewOption, judge
from fscale.commands.list import complete_workloads
from fscale.commands.options.on import OnOption, engine_of, print_place
from fscale.commands.options.output import OutputOptions
from fscale.commands.options.shared import ResultsOption
from fscale.commands.simulate import (
    BootSeedOption,
    JobsOption,
    MachineOption,
    PlanFlag,
    numbers_of,
)
from fscale.model.bundle import bundle
from fscale.model.helptext import MEASURED, REPEATED
from fscale.model.limits import MOST_REPETITIONS
from fscale.model.terminal import terminal
from fscale.model.variant import parse
from fscale.runner.request import parse_list
from fscale.runner.signals import Signals
from fscale.sim import campaign, sweep
from fscale.sim.plan import fixed
from fscale.vm.memory import mebibytes
from fscale.vm.options import MemoryOption
from fscale.vm.steps import Steps

_EPILOG = """
More examples:

    fscale gate --base ext4:kernel=6.1 --new ext4:kernel=6.12 --workload MWCL --output results/k
    fscale gate --base ext4 --new ext4:mount=data=journal --workload DWAL --output results/journal

A side is FS-OR-FILE[:mount=OPTIONS][:mkfs=ARGUMENTS][:kernel=KERNEL][:module=FILE].
KERNEL is as in `fscale vm run --kernel`, and bookworm for a side that has none.
"""


@bundle("written", OutputOptions)
def _gate(
    base: BaseOption,
    new: NewOption,
    output: ResultsOption,
    workload: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Workloads, separated by commas (`fscale list workloads`).",
            autocompletion=complete_workloads,
            rich_help_panel=MEASURED,
        ),
    ] = "DRBL,DWOL,MRPL,MWCL,MWUL,MWRL",
    cores: Annotated[
        str,
        typer.Option(
            metavar="N,...",
            help="Core counts, separated by commas: numbers or ranges such as 4-16:4. Sharing "
            "shows from 4 cores on.",
            rich_help_panel=MEASURED,
        ),
    ] = "4",
    seeds: Annotated[
        int,
        typer.Option(
            min=3,
            max=MOST_REPETITIONS,
            metavar="N",
            help="Boots per side, each with a random seed of its own. With fewer than 5, one more "
            "line of heap memory is not found in operations that share other lines.",
            rich_help_panel=REPEATED,
        ),
    ] = 5,
    seed: BootSeedOption = 1,
    machine: MachineOption = "paper",
    memory: MemoryOption = "2G",
    jobs: JobsOption = 1,
    on: OnOption = None,
    dry_run: PlanFlag = False,
    *,
    written: OutputOptions,
) -> None:
    """Simulate two sides and compare instructions and shared cache lines per operation.

    Example: fscale gate --base ext4 --new ext4:kernel=my.deb --workload MWCM --output results/gate

    Rates are not judged, so the load of this machine does not matter. The report names the cache
    lines that cause a regression and the functions that access them.

    Exit codes: 0: no regression. 1: an operation takes more instructions or cache lines, newly
    shares a line, or fails in NEW. 2: wrong usage, or no point can be judged because BASE fails.
    3: interrupted; the same command resumes.
    """
    from fscale.ab.simulated import Simulated, execute, side_directory  # noqa: PLC0415 - the statistics take seconds to load

    outputs = written.outputs
    sides = {"A": parse(base), "B": parse(new)}
    Method.SIMULATED.refuse_others(*sides.values())
    steps = Steps(terminal(error=True))
    prepared = {
        name: sweep.prepare(
            sweep.of_side(
                one,
                sweep.Sweep(
                    filesystems=[],
                    workloads=parse_list("--workload", workload),
                    cores=numbers_of(cores),
                    output=side_directory(output, name),
                    repetitions=seeds,
                    seed=seed,
                    windows=fixed(5, 512),
                    machine=machine,
                    memory_mib=mebibytes(memory, sweep.LEAST_MEMORY_MIB),
                ),
            ),
            steps,
        )
        for name, one in sides.items()
    }
    if dry_run:
        print_place(on, "the boots")
        for one in prepared.values():
            campaign.show(one, jobs)
        return
    with Signals().installed(), engine_of(on) as engine:
        execute(Simulated(output, prepared, {n: s.text for n, s in sides.items()}, jobs, engine))
    judge(output, Settings(), outputs, everything=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gate", epilog=_EPILOG)(_gate)
