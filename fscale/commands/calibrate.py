# SPDX-License-Identifier: GPL-2.0-only
"""`fscale calibrate`: measures this machine's cache lines and makes a simulated machine of them."""

import datetime
import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.options.kinds import number, output_file
from fscale.model.errors import FscaleError
from fscale.model.files import write_named
from fscale.model.terminal import say
from fscale.runner.machine.host import read_machine

_EPILOG = """
More examples:

    fscale calibrate here --calls 10 --data here.json
    fscale calibrate here --from here.json --replace    # makes the file again
    fscale simulate --machine here --fs tmpfs --workload primitive_atomic --output results/here
"""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


def _calibrate(
    name: Annotated[
        str,
        typer.Argument(help="Name of the machine, for `--machine`."),
    ],
    calls: Annotated[
        int,
        number(1, 1000, "Number of measurements; their median counts."),
    ] = 4,
    data: Annotated[
        Path | None,
        output_file("Also write all measured figures, as JSON."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Use the figures that --data wrote, possibly on another machine, and measure "
            "nothing.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite the machine if it exists.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command that measures, and exit.")
    ] = False,
) -> None:
    """Measure cache-line transfers, atomics and memory; write a machine for `fscale simulate`.

    Example: fscale calibrate here

    All usable cores are measured, each by its first hardware thread, every two of them in both
    directions. Other load disturbs the figures; nothing of the machine is changed.

    The machine is written to ~/.config/fscale/machines/NAME.toml. The file says when and on which
    CPU it was measured, and what could not be seen.

    Exit codes: 0: the file is written. 2: wrong usage, or the machine has only one core.
    """
    from fscale.sim import calibration  # noqa: PLC0415 - pydantic models take long to load
    from fscale.sim.machine import MACHINES, own_machines  # noqa: PLC0415

    if not _NAME.fullmatch(name):
        raise FscaleError(f"{name} is not a name: use small letters, digits, '.', '_' and '-'")
    if (MACHINES / f"{name}.toml").exists():
        raise FscaleError(f"{name} is a machine of fscale's; give another name")
    path = own_machines() / f"{name}.toml"
    if path.exists() and not replace and not dry_run:
        raise FscaleError(f"{path} exists; give another name, or --replace")
    if source is not None:
        measured = calibration.read(source)
    else:
        host = read_machine()
        cores = calibration.cores(host.topology, host.cpu_order)
        chosen = [cpu.cpu for cpu in cores]
        if dry_run:
            typer.echo(shlex.join(calibration.argv(chosen)))
            return
        measured = calibration.Calibration(
            cpu=host.cpu_model,
            day=datetime.datetime.now(tz=datetime.UTC).date(),
            virtual=host.virtualization is not None,
            sockets={cpu.cpu: cpu.socket for cpu in cores},
            hidden_threads=len(cores) < len(host.topology),
            samples=[calibration.sample(chosen) for _ in range(calls)],
        )
    machine = calibration.machine(measured)
    if data is not None:
        write_named(data, measured.model_dump_json(indent=1) + "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_named(path, calibration.toml(machine))
    say(f"{path}: {machine.title}, {machine.clock_mhz} MHz")
    for text in machine.unseen:
        say(f"not seen: {text}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibrate", epilog=_EPILOG)(_calibrate)
