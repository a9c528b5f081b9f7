# SPDX-License-Identifier: GPL-2.0-only
"""`fscale run`: measures a suite on this machine."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from fscale.analysis.compare.repetitions import shortage
from fscale.analysis.compare.settings import Settings
from fscale.commands.options.booted import (
    ControlOptions,
    KernelOption,
    booted,
    check_kernel,
    kernel_of,
)
from fscale.commands.options.bundle import bundle
from fscale.commands.options.ending import print_cells
from fscale.commands.options.formats import CellOutputs, Format, write
from fscale.commands.options.on import nodes_of, print_place
from fscale.commands.options.run import RunOptions
from fscale.commands.options.shared import ResultsOption
from fscale.commands.options.suite import SuiteArgument
from fscale.commands.options.writable import TERMINAL
from fscale.farm.engine import NodeEngine
from fscale.model.errors import Exit, FscaleError
from fscale.model.limits import MOST_SECONDS
from fscale.model.results import CellKey
from fscale.model.store import Store
from fscale.model.terminal import print_line, say, terminal
from fscale.runner.prepare import prepare
from fscale.runner.remeasure import Choice
from fscale.runner.run import execute, execute_on, preview
from fscale.runner.session import this_machine_held
from fscale.runner.signals import Signals
from fscale.runner.tasks import plan
from fscale.runner.turn_server import ControllerLine, offer_cell

_EPILOG = """
More examples:

    fscale run quick --workload DRBL --fs ext4,xfs --cores 1,2 --output results/x
    fscale run quick --workload MWCM --profile locks,cpu,offcpu --output results/p
    fscale run quick --set latency=true --set warmup=1 --output results/l
    fscale run quick --cores 1-8,50%,100% --set workers_per_cpu=2 --output results/w
    fscale run quick --workload DWAL --option DWAL.block=4k,16k,64k --output results/b    # a sweep
    fscale run quick --dir /srv/scratch --output results/y    # without root
    fscale run quick --output results/ci --junit fscale.xml --ktap fscale.ktap
    fscale run quick --device /dev/disk/by-id/NAME --output results/z
    fscale run ./mine.toml --dry-run --output results/d
    fscale run quick --on slurm:PARTITION --output results/nodes
    fscale run quick --on ssh:testbox --kernel ~/linux --profile locks --output results/patched
"""


@bundle("written", CellOutputs)
@bundle("controlled", ControlOptions)
@bundle("asked", RunOptions)
def _run(
    suite: SuiteArgument,
    output: ResultsOption = Path("results/DATE-SUITE"),
    *,
    kernel: KernelOption = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the commands of all cells and exit."),
    ] = False,
    turns: Annotated[
        Path | None,
        typer.Option(hidden=True, help="Serve cells to a remote controller on this serial port."),
    ] = None,
    turn_seconds: Annotated[float, typer.Option(hidden=True, min=1e-4, max=MOST_SECONDS)] = 0.02,
    asked: RunOptions,
    controlled: ControlOptions,
    written: CellOutputs,
) -> None:
    """Measure a suite on this machine: throughput of each point at each core count.

    Example: fscale run quick --fs ext4,xfs --output results/today

    A cell is one repetition of one point. Cells run one at a time, each on a fresh file system and
    with the CPUs that are not under test offline. --junit and --ktap report for each cell whether
    it has a result, also where the run was interrupted.

    Exit codes: 0: all cells succeeded. 1: a cell failed, or --kernel does not run. 2: wrong usage,
    or this machine cannot run the suite. 3: interrupted; the same command resumes. 77: something
    that the run needs is missing on this machine.
    """
    check_kernel(kernel, controlled, asked.on)
    request = asked.request(suite, output)
    if dry_run:
        prepared = prepare(request)
        _say_shortage(prepared.cells)
        print_place(asked.on, "each cell")
        preview(prepared, print_line)
        return
    outputs = written.files
    aside = TERMINAL in outputs.values()
    if asked.on is not None:
        wanted = None if kernel is None else kernel_of(kernel)
        opened: contextlib.AbstractContextManager[NodeEngine] = (
            booted(wanted, asked.on, asked.wait, controlled.controls, output)
            if wanted
            else nodes_of(asked.on, asked.wait)
        )
        with Signals().installed(), opened as engine:
            planned = plan(request, asked.wait, engine)
            if wanted:
                wanted.check(planned.run.machine)
            _say_shortage(planned.cells)
            with _written(planned.store.directory, outputs):
                execute_on(engine, planned, _choices)
        _finish(planned.store, planned.cells, aside)
        return
    with this_machine_held(asked.wait) as signals:
        prepared = prepare(request)
        _say_shortage(prepared.cells)
        with _written(prepared.store.directory, outputs):
            if turns:
                with contextlib.closing(ControllerLine(turns)) as line:
                    execute(
                        prepared, signals, lambda s, key: offer_cell(s, key, line, turn_seconds)
                    )
                    line.done()
            else:
                execute(prepared, signals, choices=_choices)
    _finish(prepared.store, prepared.cells, aside, conclude=turns is None)


def _choices() -> Sequence[Choice]:
    from fscale.analysis.remeasure import CHOICES  # noqa: PLC0415 - imports numpy

    return CHOICES


@contextlib.contextmanager
def _written(run: Path, outputs: Mapping[Format, Path]) -> Iterator[None]:
    """Write the outputs at the end, also after an error."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(FscaleError):  # the first error matters more
            write(run, outputs)
        raise
    write(run, outputs)


def _say_shortage(cells: Sequence[CellKey]) -> None:
    """Print before the first cell that the run has too few repetitions to be compared."""
    if lacking := shortage([k for k in cells if not k.control], Settings()):
        text = f"note: {lacking} (--repetitions {lacking.needed}, or the suite regression)"
        say(text, error=True)


def _finish(store: Store, keys: Sequence[CellKey], aside: bool, conclude: bool = True) -> None:
    cells = [cell for key in keys if (cell := store.load_cell(key))]
    console = terminal(error=aside)
    if conclude:  # in a guest that takes turns nobody reads it, and it takes seconds
        print_cells(console, cells, store.directory)
    failed = [cell for cell in cells if cell.status not in ("ok", "skipped")]
    for cell in failed:
        console.print(f"{cell.id}: {cell.end}: {cell.reason}", markup=False, soft_wrap=True)
    if failed:
        raise typer.Exit(Exit.FAILED)
    if cells and all(cell.status == "skipped" for cell in cells):
        raise typer.Exit(Exit.SKIPPED)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", epilog=_EPILOG)(_run)
