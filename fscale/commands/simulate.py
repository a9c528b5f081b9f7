# SPDX-License-Identifier: GPL-2.0-only
"""`fscale simulate`: scaling curves to many cores, simulated."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic import ValidationError

from analysis.whatif import answers
from fscale.commands.list import complete_filesystems, complete_media, complete_workloads
from fscale.model import catalogue
from fscale.model.bench import Mode
from fscale.model.errors import Exit, FscaleError
from fscale.model.limits import MOST_COUNT, MOST_JOBS, MOST_MEMORY, MOST_REPETITIONS, MOST_SEED
from fscale.model.terminal import terminal
from fscale.runner.progress import summary, tally
from fscale.runner.request import parse_cores
from fscale.runner.signals import Signals
from fscale.system.outputs import directory_to_write
from sim import campaign, sweep, whatif
from sim import free as freeing
from sim.machine import MACHINES, Method
from sim.plan import Windows
from vm.options import KernelTreeOption
from vm.steps import Steps

_EPILOG = """
Examples:\n\n
fscale simulate --fs tmpfs,ext4 --workload DRBH,MWCM,MWRL --cores 1,8,80 --output results/sim\n\n
fscale simulate --fs ext4 --cores 4 --machine server --seeds 3 --output results/seeds\n\n
fscale simulate --fs ext4 --workload DRBH --cores 8 --set quantum=50 --output results/q50\n\n
Then: fscale report results/sim
"""


def names_of(text: str) -> list[str]:
    """Names from `a,b`."""
    return catalogue.split_names(text)


def _complete_machines(start: str) -> list[str]:
    return [name for name in catalogue.names(MACHINES) if name.startswith(start)]


MachineOption = Annotated[
    str,
    typer.Option(
        help="configs/machines: which one to simulate, or a TOML file.",
        autocompletion=_complete_machines,
    ),
]


def numbers_of(text: str) -> list[int]:
    """Core counts from `1,8,80`."""
    counts = parse_cores(text)
    if isinstance(counts, str):
        raise FscaleError(f"--cores {text}: give numbers such as 1,8,80")
    return counts


def _mode(text: str) -> Mode:
    modes: tuple[Mode, ...] = get_args(Mode)
    for mode in modes:
        if mode == text:
            return mode
    raise FscaleError(f"unknown mode {text}; there are {', '.join(modes)}")


def _method(settings: list[str]) -> Method:
    given: dict[str, Any] = {}
    for text in settings:
        try:
            given |= tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            raise FscaleError(f"--set {text}: give KEY=VALUE, such as quantum=50") from None
    try:
        return Method.model_validate(given)
    except ValidationError as error:
        raise FscaleError(f"--set: {catalogue.explain(error, Method)}") from None


def _simulate(
    output: Annotated[
        Path,
        typer.Option(
            callback=directory_to_write,
            help="Results directory; an interrupted run in it is resumed.",
        ),
    ],
    fs: Annotated[
        str,
        typer.Option(
            help="File systems, separated by commas: names or TOML files, with :mount=OPTIONS "
            "and :mkfs=ARGUMENTS merged into what these say.",
            autocompletion=complete_filesystems,
        ),
    ] = "tmpfs,ext4",
    workload: Annotated[
        str | None,
        typer.Option(
            help="Workloads, separated by commas; without it all.",
            autocompletion=complete_workloads,
        ),
    ] = None,
    cores: Annotated[str, typer.Option(help="Core counts, separated by commas.")] = "1,8,80",
    media: Annotated[
        str, typer.Option(help="brd or null_blk.", autocompletion=complete_media)
    ] = "brd",
    mode: Annotated[str, typer.Option(help="I/O mode: buffered, direct, dontcache.")] = "buffered",
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_REPETITIONS,
            help="Repetitions per point: each a boot with its own seed.",
        ),
    ] = 1,
    seed: Annotated[
        int, typer.Option(min=1, max=MOST_SEED, help="Random seed of the first boot.")
    ] = 1,
    windows: Annotated[int, typer.Option(min=1, max=MOST_COUNT, help="Windows per point.")] = 5,
    window_ops: Annotated[
        int,
        typer.Option(min=1, max=MOST_COUNT, help="Operations of a window, of all cores together."),
    ] = 512,
    machine: MachineOption = "paper",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE: how it is simulated, such as quantum=50."),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE or WORKLOAD.NAME=VALUE; repeatable.")
    ] = None,
    kernel: Annotated[
        str, typer.Option(help="bookworm (6.1), trixie (6.12), sid, SUITE:PACKAGE, .deb, bzImage.")
    ] = "bookworm",
    kernel_tree: KernelTreeOption = None,
    module: Annotated[
        list[Path] | None, typer.Option(help="A module under test (.ko); repeatable.")
    ] = None,
    memory: Annotated[
        int, typer.Option(min=512, max=MOST_MEMORY, help="MiB of each guest.")
    ] = 4096,
    free: Annotated[
        str | None,
        typer.Option(help="Symbols of the kernel whose cache lines cost nothing, by commas."),
    ] = None,
    what_if: Annotated[
        int,
        typer.Option(
            "--what-if",
            min=0,
            max=MOST_COUNT,
            help="At the most cores: so many of the hottest objects, each made to cost nothing.",
        ),
    ] = 0,
    jobs: Annotated[
        int, typer.Option(min=1, max=MOST_JOBS, help="Guests at a time, one host CPU each.")
    ] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan; what is missing is still made.")
    ] = False,
) -> None:
    """Simulate a stock kernel on many cores: curves, counts per operation, hot cache lines.

    A kernel boots in QEMU under a plugin that gives each CPU a clock and simulates the coherence of
    its caches. Figures are good for shapes and counts, never beside measured ones;
    docs/design/simulator-model.md says what is in the model. The first call fetches QEMU and a
    kernel.

    Exit code 0 when all cells are good, 1 when one failed, 3 when interrupted (start it again with
    the same --output to go on).
    """
    steps = Steps(terminal(error=True))
    prepared = sweep.prepare(
        sweep.Sweep(
            filesystems=catalogue.split_filesystems(fs),
            workloads=names_of(workload) if workload else [],
            cores=numbers_of(cores),
            output=output,
            medium=media,
            mode=_mode(mode),
            repetitions=seeds,
            seed=seed,
            windows=Windows(windows, window_ops),
            machine=machine,
            method=_method(settings or []),
            kernel=kernel,
            kernel_tree=kernel_tree,
            modules=module or [],
            memory_mib=memory,
            options=option or [],
            free=names_of(free or ""),
        ),
        steps,
    )
    if free and not dry_run:
        prepared = freeing.applied(prepared, names_of(free))
    if dry_run:
        campaign.show(prepared, jobs)
        return
    signals = Signals()
    with signals.installed():
        cells = campaign.run(prepared, jobs)
        if what_if:
            cells += campaign.run(whatif.questions(prepared, cells, what_if), jobs)
    console = terminal(width=160)
    if (table := summary(cell for cell in cells if cell.key.side is None)).row_count:
        console.print(table)
    for answer in answers(cells):
        key = answer.key
        console.print(
            f"{key.workload} {key.filesystem} x{key.cores} without {answer.object}: "
            f"{answer.gain:.2f} times",
            soft_wrap=True,
        )
    console.print(f"{tally(cells)}; results are in {output}", markup=False, soft_wrap=True)
    if any(cell.status not in ("ok", "skipped") for cell in cells):
        raise typer.Exit(Exit.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", epilog=_EPILOG)(_simulate)
