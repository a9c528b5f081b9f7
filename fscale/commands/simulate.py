# SPDX-License-Identifier: GPL-2.0-only
"""`fscale simulate`: simulates scaling curves up to many cores."""

from typing import Annotated, Any, get_args

import typer
from pydantic import ValidationError

from fscale.analysis.hot import speeds
from fscale.analysis.whatif import answers
from fscale.commands.list import complete_filesystems, complete_media, complete_workloads
from fscale.commands.options.on import OnOption, engine_of, print_place
from fscale.commands.options.shared import ResultsOption
from fscale.commands.options.suite import FILESYSTEMS, LoadOption
from fscale.model import catalogue, corecounts, crew
from fscale.model.bench import Mode
from fscale.model.errors import Exit, FscaleError
from fscale.model.files import parse_toml
from fscale.model.helptext import GUESTS, MEASURED, REPEATED, SIMULATION
from fscale.model.limits import MOST_COUNT, MOST_JOBS, MOST_REPETITIONS, MOST_SEED
from fscale.model.terminal import terminal
from fscale.runner.progress import summary, tally
from fscale.runner.request import parse_cores, parse_list
from fscale.runner.signals import Signals
from fscale.sim import campaign, sweep, whatif
from fscale.sim.machine import Method, known
from fscale.sim.plan import WindowPlan, fixed, precise
from fscale.vm.memory import mebibytes
from fscale.vm.options import (
    AppendOption,
    KernelOption,
    KernelTreeOption,
    MemoryOption,
    ModuleOption,
)
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


def _complete_machines(start: str) -> list[str]:
    return [name for name in known() if name.startswith(start)]


MachineOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Machine to simulate: one of fscale's or of your own (`fscale calibrate`), by its "
        "name, or a TOML file.",
        autocompletion=_complete_machines,
        rich_help_panel=SIMULATION,
    ),
]
PlanFlag = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print the plan of each boot and exit; whatever a boot needs is still prepared.",
    ),
]
BootSeedOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=MOST_SEED,
        metavar="N",
        help="Random seed of the first boot; each further boot has the next number.",
        rich_help_panel=REPEATED,
    ),
]
JobsOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=MOST_JOBS,
        metavar="N",
        help="Guests to run at the same time; each uses one CPU of the host.",
        rich_help_panel=GUESTS,
    ),
]


def numbers_of(text: str) -> list[int]:
    """Expand `1,8-16:4,80` to core counts.

    Raises:
        FscaleError: the text is not a list of numbers and ranges.
    """
    counts = parse_cores(text)
    found = None if isinstance(counts, str) else corecounts.numbers(counts)
    if found is None:
        raise FscaleError(
            f"--cores {text}: a simulated machine has as many cores as its largest count, so a "
            "preset or a share means nothing there; give numbers or ranges such as 1,8-16:4,80"
        )
    return found


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


def _simulate(
    output: ResultsOption,
    fs: Annotated[
        str,
        typer.Option(
            metavar="FS,...",
            help=FILESYSTEMS,
            autocompletion=complete_filesystems,
            rich_help_panel=MEASURED,
        ),
    ] = "tmpfs,ext4",
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Workloads, separated by commas (`fscale list workloads`). Default: all.",
            autocompletion=complete_workloads,
            rich_help_panel=MEASURED,
        ),
    ] = None,
    cores: Annotated[
        str,
        typer.Option(
            metavar="N,...",
            help="Core counts, separated by commas: numbers or ranges such as 8-32:8.",
            rich_help_panel=MEASURED,
        ),
    ] = "1,8,80",
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
        typer.Option(
            min=1,
            max=MOST_REPETITIONS,
            metavar="N",
            help="Repetitions per point: boots, each with a random seed of its own.",
            rich_help_panel=REPEATED,
        ),
    ] = 1,
    seed: BootSeedOption = 1,
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
        typer.Option(
            min=1,
            max=MOST_COUNT,
            metavar="N",
            help="Simulate N windows per point, however precise the throughput is.",
            rich_help_panel=SIMULATION,
        ),
    ] = None,
    window_ops: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_COUNT,
            metavar="N",
            help="With --windows: operations per window, of all cores together; at least 4 per "
            "core.",
            rich_help_panel=SIMULATION,
        ),
    ] = 512,
    machine: MachineOption = "paper",
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
    memory: MemoryOption = "4G",
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
        typer.Option(
            "--what-if",
            min=0,
            max=MOST_COUNT,
            metavar="N",
            help="Simulate the points of most cores again, once for each of their N hottest "
            "objects, with the cache-line transfers of that object free.",
            rich_help_panel=SIMULATION,
        ),
    ] = 0,
    jobs: JobsOption = 1,
    on: OnOption = None,
    dry_run: PlanFlag = False,
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
    freed = parse_list("--free", free) or []
    steps = Steps(terminal(error=True))
    prepared = sweep.prepare(
        sweep.Sweep(
            filesystems=parse_list("--fs", fs, catalogue.split_filesystems) or [],
            workloads=parse_list("--workload", workload),
            cores=numbers_of(cores),
            output=output,
            medium=media,
            mode=_mode(mode),
            repetitions=seeds,
            seed=seed,
            windows=_windows(precision, windows, window_ops),
            machine=machine,
            method=_method(settings or []),
            kernel=kernel,
            kernel_tree=kernel_tree,
            modules=module or [],
            memory_mib=mebibytes(memory, sweep.LEAST_MEMORY_MIB),
            append=append,
            options=option or [],
            free=freed,
        ),
        steps,
    )
    if freed and not dry_run:
        prepared = whatif.free_objects(prepared, freed)
    if dry_run:
        print_place(on, "the boots")
        campaign.show(prepared, jobs)
        return
    signals = Signals()
    with signals.installed(), engine_of(on) as engine:
        cells = campaign.run(prepared, jobs, engine)
        if what_if:
            cells += campaign.run(whatif.plan_whatif(prepared, cells, what_if), jobs, engine)
    console = terminal(width=160)
    if (table := summary(cell for cell in cells if cell.key.side is None)).row_count:
        console.print(table)
    for answer in answers(cells):
        key = answer.key
        console.print(
            f"{key.workload} {key.filesystem} x{key.cores} without {answer.object}: "
            f"{answer.gain:.2f} times the throughput",
            soft_wrap=True,
        )
    if speed := speeds(cells):
        console.print(
            "speed of simulation in million instructions per CPU second, medians: "
            + ", ".join(f"{mips:.1f} at x{cores}" for cores, mips in speed.items())
        )
    console.print(f"{tally(cells)}; results are in {output}", markup=False, soft_wrap=True)
    if any(cell.status not in ("ok", "skipped") for cell in cells):
        raise typer.Exit(Exit.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", epilog=_EPILOG)(_simulate)
