# SPDX-License-Identifier: GPL-2.0-only
"""Options of the commands that simulate."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fscale.commands.options.guest import MemoryOption
from fscale.commands.options.helptext import GUESTS, MEASURED, REPEATED, SIMULATION
from fscale.commands.options.kinds import number
from fscale.commands.options.on import OnOption
from fscale.model import corecounts
from fscale.model.errors import FscaleError
from fscale.model.limits import MOST_JOBS, MOST_SEED
from fscale.runner.request import parse_cores, parse_list
from fscale.sim.machine import known
from fscale.sim.sweep import LEAST_MEMORY_MIB, Sweep
from fscale.vm.memory import mebibytes


def _complete_machines(start: str) -> list[str]:
    return [name for name in known() if name.startswith(start)]


JobsOption = Annotated[
    int,
    number(1, MOST_JOBS, "Guests to run at the same time; each uses one CPU of the host.", GUESTS),
]


@dataclass(frozen=True)
class SimulationOptions:
    """What is simulated, and by how many guests. Each field is an option of the same name."""

    cores: Annotated[
        str,
        typer.Option(
            metavar="N,...",
            help="Core counts, separated by commas: numbers or ranges such as 8-32:8.",
            rich_help_panel=MEASURED,
        ),
    ] = "1,8,80"
    seed: Annotated[
        int,
        number(
            1,
            MOST_SEED,
            "Random seed of the first boot; each further boot has the next number.",
            REPEATED,
        ),
    ] = 1
    machine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Machine to simulate: one of fscale's or of your own (`fscale calibrate`), by its "
            "name, or a TOML file.",
            autocompletion=_complete_machines,
            rich_help_panel=SIMULATION,
        ),
    ] = "paper"
    memory: MemoryOption = "4G"
    jobs: JobsOption = 1
    on: OnOption = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the plan of each boot and exit; whatever a boot needs is still prepared.",
        ),
    ] = False

    def sweep(
        self, output: Path, filesystems: Sequence[str], workloads: str | None, **more: Any
    ) -> Sweep:
        """Return a simulation with these options and `more` of its fields.

        Raises:
            FscaleError: an option has another form.
        """
        return Sweep(
            filesystems=filesystems,
            workloads=parse_list("--workload", workloads),
            cores=core_counts(self.cores),
            output=output,
            seed=self.seed,
            machine=self.machine,
            memory_mib=mebibytes(self.memory, LEAST_MEMORY_MIB),
            **more,
        )


def core_counts(text: str) -> list[int]:
    """Expand `1,8-16:4,80` to core counts.

    Raises:
        FscaleError: the text is not a list of numbers and ranges.
    """
    counts = parse_cores(text)
    numbers = None if isinstance(counts, str) else corecounts.numbers(counts)
    if numbers is None:
        raise FscaleError(
            f"--cores {text}: a simulated machine has as many cores as its largest count, so a "
            "preset or a share means nothing there; give numbers or ranges such as 1,8-16:4,80"
        )
    return numbers
