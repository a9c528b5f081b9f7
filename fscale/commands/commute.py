# SPDX-License-Identifier: GPL-2.0-only
"""`fscale commute`: which calls conflict although they commute."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.options.formats import put
from fscale.commands.options.guest import ModuleOption
from fscale.commands.options.helptext import GUESTS, MEASURED, REPEATED
from fscale.commands.options.kinds import number
from fscale.commands.options.on import OnOption, engine_of, print_place
from fscale.commands.options.shared import JsonFlag, ResultsOption
from fscale.commands.options.simulated import JobsOption
from fscale.commands.options.suite import GuestFilesystemsOption
from fscale.commands.options.writable import TERMINAL
from fscale.commute import guest, matrix
from fscale.commute.boot import Boot, Ended, estimate_boot, estimate_seconds, execute_here
from fscale.commute.campaign import Campaign
from fscale.commute.generate import Selection
from fscale.commute.matrix import Matrices, Matrix, Pair, print_matrix
from fscale.commute.posix import CALLS
from fscale.commute.store import Store
from fscale.commute.tasks import execute_elsewhere
from fscale.model import catalogue
from fscale.model.errors import FscaleError
from fscale.model.limits import MOST_COUNT, MOST_REPETITIONS, MOST_SEED
from fscale.model.terminal import only_ascii, print_line, terminal
from fscale.model.words import plural
from fscale.runner.progress import duration
from fscale.runner.request import parse_list
from fscale.runner.signals import Signals
from fscale.sim.campaign import first_cpus
from fscale.vm.steps import Steps

_EPILOG = """
More examples:

    fscale commute --dry-run
    fscale commute --fs tmpfs,ext4 --kernel 6.1,6.12 --calls open,link,unlink --output results/names

    fscale commute --each 0 --jobs 2 --output results/all    # every test, on two CPUs
"""


def _calls(text: str | None) -> list[str]:
    given = parse_list("--calls", text) or list(CALLS)
    for name in given:
        if name not in CALLS:
            raise FscaleError(f"--calls {name}: no such call{catalogue.suggest(name, CALLS)}")
    return given


def _commute(
    output: ResultsOption = Path("results/DATE-commute"),
    fs: GuestFilesystemsOption = "tmpfs",
    kernel: Annotated[
        str,
        typer.Option(
            metavar="KERNEL,...",
            help="Kernels to boot, separated by commas, each as for `fscale simulate`.",
            rich_help_panel=GUESTS,
        ),
    ] = "6.12",
    module: ModuleOption = None,
    calls: Annotated[
        str | None,
        typer.Option(
            metavar="CALL,...",
            help="Calls of the model, separated by commas. Default: all 18.",
            rich_help_panel=MEASURED,
        ),
    ] = None,
    each: Annotated[
        int,
        number(
            0,
            MOST_COUNT,
            "Execute at most N tests of each pair of calls, drawn at random; 0: all.",
            MEASURED,
        ),
    ] = 20,
    boots: Annotated[
        int,
        number(
            2,
            MOST_REPETITIONS,
            "Boots per file system and kernel; a conflict counts if each of them has it.",
            REPEATED,
        ),
    ] = 3,
    seed: Annotated[
        int, number(1, MOST_SEED, "Random seed of the tests and of the first boot.", REPEATED)
    ] = 1,
    jobs: JobsOption = 1,
    on: OnOption = None,
    json: JsonFlag = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print how many tests each pair of calls has, and about how long they take.",
        ),
    ] = False,
) -> None:
    """Find calls that commute but conflict: which pairs share a cache line, and which object it is.

    Example: fscale commute --fs tmpfs --kernel 6.12 --output results/commute

    Where two calls commute, an implementation is possible in which neither writes a cache line that
    the other accesses. Tests are made from a model of 18 POSIX calls; each executes two calls in a
    simulated guest. docs/design/commutativity.md describes the model.

    Exit codes: 0: all tests were executed. 1: a guest or a test failed. 2: wrong usage. 3:
    interrupted; the same command resumes.
    """
    kernels = parse_list("--kernel", kernel) or []
    filesystems = parse_list("--fs", fs, catalogue.split_filesystems) or []
    for name in filesystems:
        guest.describe(name)
    selection = Selection(calls=tuple(_calls(calls)), each=each or None, seed=seed)
    counts, tests = selection.draw()
    if dry_run:
        print_place(on, "the boots")
        _show_plan(counts, len(tests), len(kernels) * len(filesystems) * boots, jobs)
        return
    steps = Steps(terminal(error=True))
    store = Store(output)
    console = terminal(ascii_only=only_ascii())
    found: list[Matrix] = []
    with Signals().installed(), engine_of(on) as engine:
        store.check(tests)
        guests = [
            guest.prepare(name, one, module or [], steps) for one in kernels for name in filesystems
        ]
        campaign = Campaign(store, guests, tests, boots, seed)
        store.save_tests(tests)

        def execute(waiting: Sequence[Boot]) -> Ended:
            if engine:
                return execute_elsewhere(waiting, selection, tests, engine, steps.note)
            return execute_here(waiting, tests, first_cpus(jobs), output / "guest")

        for measured in campaign.measure(counts, execute):
            found.append(measured)
            store.save_matrices(Matrices(matrices=found))
            if not json:
                print_matrix(console, measured)
    if json:
        put(TERMINAL, Matrices(matrices=found).text())


def _show_plan(counts: Mapping[Pair, int], tests: int, boots: int, jobs: int) -> None:
    for line in matrix.lines({pair: str(n) for pair, n in counts.items()}):
        print_line(line)
    about = duration(estimate_seconds(boots, estimate_boot(tests), jobs))
    print_line(
        f"{plural(sum(counts.values()), 'test')}, of which {tests:,} are executed in each of "
        f"{plural(boots, 'boot')}: about {about}"
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("commute", epilog=_EPILOG)(_commute)
