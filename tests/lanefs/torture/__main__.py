# SPDX-License-Identifier: GPL-2.0-only
"""`python -m tests.lanefs.torture`: every test of lanefs at length, in guests, resumable."""

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.model.errors import Exit, FscaleError
from fscale.model.paths import ROOT
from fscale.runner.progress import duration
from fscale.runner.signals import Signals
from tests.lanefs.torture import drive
from tests.lanefs.torture.plan import KERNELS, LIMIT, Slice, plan
from tests.lanefs.torture.state import Record, State, source_hash
from tests.lanefs.torture.table import left, render

LANEFS = ROOT / "lanefs"
app = typer.Typer(add_completion=False)


@app.command()
def run(
    *,
    output: Annotated[
        Path, typer.Option(help="Directory for results; with the same one a test run resumes.")
    ] = Path("results/lanefs-torture"),
    kernel: Annotated[
        list[str] | None,
        typer.Option(help=f"Kernel: {', '.join(KERNELS)}; repeatable. Default: all."),
    ] = None,
    kernel_tree: Annotated[
        Path | None, typer.Option(help="Built kernel tree instead, such as one with KASAN.")
    ] = None,
    part: Annotated[
        list[str] | None, typer.Option(help="Part to run (--dry-run lists them); repeatable.")
    ] = None,
    slices: Annotated[int, typer.Option(min=0, help="Stop after this many slices; 0: all.")] = 0,
    limit: Annotated[
        int, typer.Option(min=60, help="Stop the guest of a slice after this many seconds.")
    ] = LIMIT,
    append: Annotated[str, typer.Option(help="Kernel parameters to append.")] = "",
    log: Annotated[
        bool,
        typer.Option("--log", help="Test the log-structured mode, with cleaners always at work."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the slices and exit.")] = False,
) -> None:
    """Run every test of lanefs at length, in slices: guests of some minutes each.

    Example: python -m tests.lanefs.torture --kernel trixie --part crash

    For each kernel: function tests; 1,000,000 random operations against a model, also with little
    memory and on a full disk; 2,000 corrupted images; 1,500 power cuts (with torn writes) over
    every mix of operations; the suite's 19 workloads at 1, 2, 4 and 8 CPUs; Exim, RocksDB and
    DBENCH; a directory of a million names. All of it takes some seven hours on two idle cores
    without KVM (extrapolated). A slice that passed is not run again until a source of lanefs
    changes.

    Exit codes: 0: all slices passed. 1: a slice failed; its log is in OUTPUT/SOURCE-HASH/.

    More examples:

        python -m tests.lanefs.torture --log --part full    # a log that is 95% full

        python -m tests.lanefs.torture --slices 1    # one guest, then the table

        python -m tests.lanefs.torture --limit 3600 --kernel-tree TREE    # KASAN, lockdep
    """
    if unknown := set(kernel or []) - set(KERNELS):
        raise FscaleError(f"no kernel {', '.join(unknown)}; there are {', '.join(KERNELS)}")
    kernels = [str(kernel_tree.resolve())] if kernel_tree else kernel or KERNELS
    planned = choose(plan(kernels, limit, append, log), part)
    state = State(output.resolve())
    if dry_run:
        for piece in planned:
            typer.echo(f"{piece.id}: python -m {piece.module} {' '.join(piece.argv)}")
        return
    make = ["make", "-s", "-C", str(ROOT / "tests" / "lanefs" / "model")]
    subprocess.run(make, check=True)
    with Signals().installed():
        failed = _run(planned, state, output.resolve(), slices)
    if failed:
        raise typer.Exit(Exit.FAILED)


def choose(planned: Sequence[Slice], parts: Sequence[str] | None) -> list[Slice]:
    """The slices of these parts; FscaleError when there is none of a name."""
    known = {piece.part.name for piece in planned}
    for name in parts or []:
        if name not in known:
            raise FscaleError(f"no part {name}; there are {', '.join(sorted(known))}")
    return [piece for piece in planned if not parts or piece.part.name in parts]


def _run(planned: Sequence[Slice], state: State, output: Path, most: int) -> bool:
    """Run what has not passed yet, at most so many slices; whether one of the plan has failed."""
    console = Console(stderr=True, highlight=False)
    source = source_hash(LANEFS)
    done = state.records(source)
    todo = [piece for piece in planned if not (piece.id in done and done[piece.id].ok)]
    # What has failed comes last: the others have seen nothing yet.
    todo.sort(key=lambda piece: piece.id in done)
    try:
        for piece in todo[: most or None]:
            remaining = duration(left(planned, done))
            console.print(f"{piece.id} ({len(todo)} slices, {remaining} left)", markup=False)
            verdict = drive.run(piece, output / source)
            if source_hash(LANEFS) != source:
                raise FscaleError(
                    "a source of lanefs changed meanwhile: this slice counts for none"
                )
            when = datetime.now(UTC).isoformat(timespec="seconds")
            argv = [piece.module, *piece.argv]
            record = Record(source, piece.id, argv, verdict.ok, verdict.seconds, verdict.text, when)
            state.add(record)
            done[piece.id] = record
            word = "ok" if verdict.ok else "FAILED"
            console.print(f"  {word} ({verdict.seconds:.0f} s) {verdict.text}", markup=False)
    finally:
        typer.echo(render(planned, done, source))
    return any(piece.id in done and not done[piece.id].ok for piece in planned)


if __name__ == "__main__":
    try:
        app()
    except FscaleError as error:
        typer.echo(f"tests.lanefs.torture: {error}", err=True)
        raise SystemExit(error.code) from None
