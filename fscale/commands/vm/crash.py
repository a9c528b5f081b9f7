# SPDX-License-Identifier: GPL-2.0-only
"""`fscale vm crash`: simulates power cuts in a guest."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.commands.options.guest import GuestOptions, guest_options
from fscale.commands.options.helptext import TESTED
from fscale.commands.options.kinds import number, output_directory
from fscale.commands.options.on import OnOption, engine_of, print_place
from fscale.farm.answer import CRASH_FILE
from fscale.model import catalogue
from fscale.model.argv import split
from fscale.model.errors import Exit, FscaleError
from fscale.model.limits import MOST_COUNT, MOST_JOBS, MOST_SEED
from fscale.model.variant import parse
from fscale.runner.request import parse_list
from fscale.vm import crash as crashes
from fscale.vm import crashload, untrusted
from fscale.vm import guest as guests
from fscale.vm.boot import prepare, print_commands
from fscale.vm.steps import Steps
from fscale.vm.tasks import Elsewhere

_CRASH_EPILOG = """
More examples:

    fscale vm crash --fs ext4 --plant lost-flush    # proves that the test detects faults
    fscale vm crash --fs lanefs --remount journal=serial --remount journal=concurrent
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("crash", epilog=_CRASH_EPILOG)(_crash)


def _command(option: str, text: str) -> list[str]:
    words = split(text, f"{option} {text}")
    if not words:
        raise FscaleError(f"{option} {text!r} names no command; give one, or leave it out")
    return words


@guest_options(smp=2, memory="3G")
def _crash(
    *,
    fs: Annotated[
        str,
        typer.Option(
            "--fs",
            metavar="FS",
            help="File system to test: a name (`fscale list filesystems`) or a TOML file.",
        ),
    ],
    workload: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"Operations of the workload: {', '.join(crashload.WORKLOADS)}.",
            rich_help_panel=TESTED,
        ),
    ] = "mix",
    points: Annotated[
        int,
        number(1, MOST_COUNT, "Number of crash points to test.", TESTED),
    ] = 200,
    workers: Annotated[
        int,
        number(1, MOST_JOBS, "Number of processes that write concurrently.", TESTED),
    ] = 4,
    seed: Annotated[
        int,
        number(0, MOST_SEED, "Random seed for the operations.", TESTED),
    ] = 1,
    fsck: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Check command, such as 'fsck.myfs -n {device}'; it must change nothing and fail "
            "on damage. Default: the command in its TOML file.",
            rich_help_panel=TESTED,
        ),
    ] = None,
    mount_options: Annotated[
        str | None,
        typer.Option(
            metavar="OPTIONS",
            help="Mount options, separated by commas, which replace those of the file system.",
            rich_help_panel=TESTED,
        ),
    ] = None,
    plant: Annotated[
        str | None,
        typer.Option(
            metavar="FAULT",
            help="Inject a fault into the disk that the test must detect: no-flush (drops all "
            "flushes) or lost-flush (delays every third one).",
            rich_help_panel=TESTED,
        ),
    ] = None,
    subsets: Annotated[
        int,
        number(
            0,
            MOST_COUNT,
            "At each flush, also test N states in which a random part of the writes since the "
            "last flush is on the disk.",
            TESTED,
        ),
    ] = 0,
    remount: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTIONS",
            help="Remount with these options while the workload runs; repeat for several, which "
            "are used in turn.",
            rich_help_panel=TESTED,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        output_directory("Directory in which the findings and the console log are kept."),
    ] = None,
    on: OnOption = None,
    guest: GuestOptions,
) -> None:
    """Simulate power cuts: is everything that was fsync'd still there after a crash?

    Example: fscale vm crash --fs ext4 --points 200

    The test records all writes of a workload that calls fsync. For each crash point it replays the
    writes up to that point, mounts the file system, compares it with what was fsync'd, and runs
    the check command.

    Exit codes: 0: all crash points passed. 1: a crash point failed, and the first one is printed;
    or the guest ended early. 2: wrong usage, or the workload made fewer flushes than --points.
    """
    parse(fs).refuse_but(("mount", "mkfs"), "a crash test")
    spec = crashes.specify(
        catalogue.load_filesystem(fs),
        workload=workload,
        points=points,
        workers=workers,
        seed=seed,
        fsck=None if fsck is None else _command("--fsck", fsck),
        mount_options=parse_list("--mount-options", mount_options),
        plant=plant,
        subsets=subsets,
        remounts=remount,
    )
    steps = Steps(Console(stderr=True))
    with tempfile.TemporaryDirectory() as scratch:
        results = (output or Path(scratch) / "results").resolve()
        results.mkdir(parents=True, exist_ok=True)
        untrusted.remove(results / CRASH_FILE)
        job = crashes.job(spec, Path(scratch), results)
        user_files = [Path(fs)] if catalogue.is_path(fs) else []
        boot, emulator = prepare(job, guest, steps, filesystems=[fs], user_files=user_files)
        if guest.dry_run:
            print_place(on, "guests that test parts of the points")
            print_commands(boot, emulator)
            return
        with engine_of(on) as engine:
            if engine:
                elsewhere = Elsewhere(engine, emulator, steps.note)
                result = crashes.run_elsewhere(boot, spec, Path(scratch), elsewhere)
            else:
                outcome = guests.run(boot.guest, emulator, boot.job, steps)
                if outcome.end != "finished":
                    raise guests.GuestError(outcome)
                result = crashes.load(results, "see its output above")
    typer.echo(crashes.verdict(Path(fs).stem, spec, result))
    if result.first:
        raise typer.Exit(Exit.FAILED)
    if result.tested < points:
        raise FscaleError(
            f"tested only {result.tested} of {points} crash points: the workload made too few "
            "flushes; give a smaller --points"
        )
