# SPDX-License-Identifier: GPL-2.0-only
"""`fscale simulate`: simulates scaling curves up to many cores."""

from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic import ValidationError

from fscale.analysis.hot import speeds
from fscale.analysis.whatif import answers
from fscale.commands.options.bundle import bundle
from fscale.commands.options.completion import (
    complete_media,
    complete_workloads,
)
from fscale.commands.options.ending import print_cells
from fscale.commands.options.guest import (
    AppendOption,
    KernelOption,
    KernelTreeOption,
    ModuleOption,
)
from fscale.commands.options.helptext import MEASURED, REPEATED, SIMULATION
from fscale.commands.options.kinds import number
from fscale.commands.options.on import engine_of, print_place
from fscale.commands.options.shared import ResultsOption
from fscale.commands.options.simulated import SimulationOptions
from fscale.commands.options.suite import GuestFilesystemsOption, LoadOption
from fscale.model import catalogue, crew
from fscale.model.bench import Mode
from fscale.model.errors import Exit, FscaleError
from fscale.model.files import parse_toml
from fscale.model.limits import MOST_COUNT, MOST_REPETITIONS
from fscale.model.terminal import terminal
from fscale.runner.request import parse_list
from fscale.runner.signals import Signals
from fscale.sim import campaign, sweep, whatif
from fscale.sim.machine import Method
from fscale.sim.plan import WindowPlan, fixed, precise
from fscale.vm.steps import Steps

_EPILOG = """
More examples:

    fscale simulate --fs tmpfs,ext4 --workload DRBH,MWCM,MWRL --cores 1,8,80 --output results/sim
    fscale simulate --fs ext4 --cores 4 --machine server --seeds 3 --output results/seeds
    fscale simulate --fs ext4 --workload DRBH --cores 8 --set quantum=50 --output results/q50
    fscale report results/sim    # draws the curves
"""

# The kernel of FxMark's paper had no security module. Debian's has AppArmor, whose label all opens
# share, and without it SELinux; a module of a name that does not exist leaves out all of them.
PAPER_KERNEL = "lsm=none"
# Of the throughput: relative half-width of its 95% band at which a point ends.
PRECISION = 0.1


def _mode(text: str) -> Mode:
    modes: tuple[Mode, ...] = get_args(Mode)
    for mode in modes:
        if mode == text:
            return mode
    raise FscaleError(f"--mode {text}: no such mode; give one of {', '.join(modes)}")


def _method(settings: list[str]) -> Method:
    given: dict[str, Any] = {}
    for text in settings:
        try:
            given |= parse_toml(text)
        except ValueError:
            raise FscaleError(f"--set {text}: give KEY=VALUE, such as quantum=50") from None
    if unknown := given.keys() & crew.DEFAULTS.keys():
        raise FscaleError(
            f"--set {min(unknown)}: the simulator runs one worker on each of its first cores; "
            "leave it out"
        )
    try:
        return Method.model_validate(given)
    except ValidationError as error:
        raise FscaleError(f"--set: {catalogue.explain(error, Method)}") from None


def _windows(precision: float | None, windows: int | None, ops: int) -> WindowPlan:
    if windows is None:
        return precise(PRECISION if precision is None else precision)
    if precision is not None:
        raise FscaleError("--precision and --windows exclude each other; leave one out")
    return fixed(windows, ops)


@bundle("simulated", SimulationOptions)
def _simulate(
    output: ResultsOption = Path("results/DATE-simulate"),
    fs: GuestFilesystemsOption = "tmpfs,ext4",
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Workloads, separated by commas (`fscale list workloads`). Default: all.",
            autocompletion=complete_workloads,
            rich_help_panel=MEASURED,
        ),
    ] = None,
    media: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Medium: brd or null_blk.",
            autocompletion=complete_media,
            rich_help_panel=MEASURED,
        ),
    ] = "brd",
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="I/O mode: buffered, direct or dontcache.",
            rich_help_panel=MEASURED,
        ),
    ] = "buffered",
    seeds: Annotated[
        int,
        number(
            1,
            MOST_REPETITIONS,
            "Repetitions per point: boots, each with a random seed of its own.",
            REPEATED,
        ),
    ] = 1,
    precision: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1,
            metavar="PART",
            help="End a point when the 95% band of its throughput reaches from -PART to +PART of "
            f"it, or after 48 short windows. Default: {PRECISION}, unless --windows is given.",
            rich_help_panel=SIMULATION,
        ),
    ] = None,
    windows: Annotated[
        int | None,
        number(
            1,
            MOST_COUNT,
            "Simulate N windows per point, however precise the throughput is.",
            SIMULATION,
        ),
    ] = None,
    window_ops: Annotated[
        int,
        number(
            1,
            MOST_COUNT,
            "With --windows: operations per window, of all cores together; at least 4 per core.",
            SIMULATION,
        ),
    ] = 512,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a parameter of the simulator, such as quantum=50 (docs/design/simulator.md); "
            "repeatable.",
            rich_help_panel=SIMULATION,
        ),
    ] = None,
    option: LoadOption = None,
    kernel: KernelOption = "bookworm",
    kernel_tree: KernelTreeOption = None,
    module: ModuleOption = None,
    append: AppendOption = PAPER_KERNEL,
    free: Annotated[
        str | None,
        typer.Option(
            metavar="SYMBOL,...",
            help="Kernel symbols, separated by commas, whose cache-line transfers cost nothing: "
            "static objects, or functions for the lines that they access.",
            rich_help_panel=SIMULATION,
        ),
    ] = None,
    what_if: Annotated[
        int,
        number(
            0,
            MOST_COUNT,
            "Simulate the points of most cores again, once for each of their N hottest "
            "objects, with the cache-line transfers of that object free.",
            SIMULATION,
        ),
    ] = 0,
    *,
    simulated: SimulationOptions,
) -> None:
    """Simulate a stock kernel on many cores: curves, counts per operation, hot cache lines.

    Example: fscale simulate --fs ext4 --workload MWCM --cores 1,8,80 --output results/sim

    A kernel boots in QEMU under a plugin that gives each CPU a clock and simulates the coherence of
    the caches. The results show the shape of curves and counts per operation; do not compare them
    with measured values. docs/design/simulator-model.md describes the model. The first call fetches
    QEMU and a kernel. The kernel runs without security modules, as the one of FxMark's paper did;
    --append '' leaves AppArmor on.

    Exit codes: 0: all cells succeeded. 1: a cell failed. 2: wrong usage. 3: interrupted; the same
    command resumes.
    """
    jobs = simulated.jobs
    freed = parse_list("--free", free) or []
    steps = Steps(terminal(error=True))
    prepared = sweep.prepare(
        simulated.sweep(
            output,
            parse_list("--fs", fs, catalogue.split_filesystems) or [],
            workload,
            medium=media,
            mode=_mode(mode),
            repetitions=seeds,
            windows=_windows(precision, windows, window_ops),
            method=_method(settings or []),
            kernel=kernel,
            kernel_tree=kernel_tree,
            modules=module or [],
            append=append,
            options=option or [],
            free=freed,
        ),
        steps,
    )
    if freed and not simulated.dry_run:
        prepared = whatif.free_objects(prepared, freed)
    if simulated.dry_run:
        print_place(simulated.on, "the boots")
        campaign.show(prepared, jobs)
        return
    signals = Signals()
    with signals.installed(), engine_of(simulated.on) as engine:
        cells = campaign.run(prepared, jobs, engine)
        if what_if:
            cells += campaign.run(whatif.plan_whatif(prepared, cells, what_if), jobs, engine)
    console = terminal()
    for answer in answers(cells):
        key = answer.key
        console.print(
            f"{key.load} {key.filesystem} x{key.cores} without {answer.object}: "
            f"{answer.gain:.2f} times the throughput",
            soft_wrap=True,
        )
    if speed := speeds(cells):
        console.print(
            "speed of simulation in million instructions per CPU second, medians: "
            + ", ".join(f"{mips:.1f} at x{cores}" for cores, mips in speed.items())
        )
    print_cells(console, cells, output)
    if any(cell.status not in ("ok", "skipped") for cell in cells):
        raise typer.Exit(Exit.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", epilog=_EPILOG)(_simulate)
