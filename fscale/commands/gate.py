# SPDX-License-Identifier: GPL-2.0-only
"""`fscale gate`: does a change do more, or share more, for an operation?"""

from pathlib import Path
from typing import Annotated

import typer

from analysis.compare.settings import Settings
from fscale.ab.ways import Way
from fscale.commands.ab import judge
from fscale.commands.list import complete_workloads
from fscale.commands.options.output import OutputOptions
from fscale.commands.simulate import MachineOption, names_of, numbers_of
from fscale.model.bundle import bundle
from fscale.model.limits import MOST_JOBS, MOST_MEMORY, MOST_REPETITIONS, MOST_SEED
from fscale.model.terminal import terminal
from fscale.model.variant import parse
from fscale.runner.signals import Signals
from fscale.system.outputs import directory_to_write
from sim import campaign, sweep
from sim.plan import Windows
from vm.steps import Steps

_EPILOG = """
Examples:\n\n
fscale gate --base lanefs:module=old.ko --new lanefs:module=new.ko --output results/gate\n\n
fscale gate --base ext4:kernel=6.1 --new ext4:kernel=6.12 --workload MWCL --output results/k\n\n
fscale gate --base ext4 --new ext4:mount=data=journal --workload DWAL --output results/journal\n\n
A side is FS-OR-FILE[:mount=OPTIONS][:mkfs=ARGUMENTS][:kernel=KERNEL][:module=FILE].
"""


@bundle("written", OutputOptions)
def _gate(
    base: Annotated[str, typer.Option(help="Side A: FS[:mount=][:mkfs=][:kernel=][:module=].")],
    new: Annotated[str, typer.Option(help="Side B, in the same way.")],
    output: Annotated[
        Path,
        typer.Option(
            callback=directory_to_write,
            help="Results directory; an interrupted run in it is resumed.",
        ),
    ],
    workload: Annotated[
        str,
        typer.Option(
            help="Workloads, separated by commas.",
            autocompletion=complete_workloads,
        ),
    ] = "DRBL,DWOL,MRPL,MWCL,MWUL,MWRL",
    cores: Annotated[str, typer.Option(help="Core counts; sharing shows from 4 on.")] = "4",
    seeds: Annotated[int, typer.Option(min=3, max=MOST_REPETITIONS, help="Boots per side.")] = 3,
    seed: Annotated[
        int, typer.Option(min=1, max=MOST_SEED, help="Random seed of the first boot of each side.")
    ] = 1,
    machine: MachineOption = "paper",
    memory: Annotated[
        int, typer.Option(min=512, max=MOST_MEMORY, help="MiB of each guest.")
    ] = 2048,
    jobs: Annotated[int, typer.Option(min=1, max=MOST_JOBS, help="Guests at a time.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the boots and exit.")] = False,
    *,
    written: OutputOptions,
) -> None:
    """Simulate two sides and compare instructions and shared cache lines per operation.

    Exit code 0: no regression. 1: an operation takes more instructions or cache lines, newly
    shares a line, or fails in NEW; the report names the lines and the functions that access them.
    2: no point can be judged, because BASE fails. Rates are not judged.
    """
    from fscale.ab.simulated import Simulated, execute, side_directory  # noqa: PLC0415 - the statistics take seconds to load

    outputs = written.outputs
    sides = {"A": parse(base), "B": parse(new)}
    Way.SIMULATED.refuse_others(*sides.values())
    steps = Steps(terminal(error=True))
    prepared = {
        name: sweep.prepare(
            sweep.of_side(
                one,
                sweep.Sweep(
                    filesystems=[],
                    workloads=names_of(workload),
                    cores=numbers_of(cores),
                    output=side_directory(output, name),
                    repetitions=seeds,
                    seed=seed,
                    windows=Windows(5, 512),
                    machine=machine,
                    memory_mib=memory,
                ),
            ),
            steps,
        )
        for name, one in sides.items()
    }
    if dry_run:
        for one in prepared.values():
            campaign.show(one, jobs)
        return
    with Signals().installed():
        execute(Simulated(output, prepared, {n: s.text for n, s in sides.items()}, jobs))
    judge(output, Settings(), outputs, everything=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gate", epilog=_EPILOG)(_gate)
