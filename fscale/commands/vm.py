# SPDX-License-Identifier: GPL-2.0-only
"""`fscale vm`: runs suites in a QEMU guest, with any kernel and with modules under test."""

import os
import shlex
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.ab.methods import method_of, refuse_here, refuse_unsupported
from fscale.commands.ab import FixedOption, judge, measure_in_guests
from fscale.commands.options.in_guest import suite_in_guest
from fscale.commands.options.judge import JudgeOptions
from fscale.commands.options.on import CountingOption, OnOption, engine_of, print_place
from fscale.commands.options.output import OutputOptions
from fscale.commands.options.shared import AllOption, MinutesOption, ResultsOption
from fscale.commands.options.suite import SuiteArgument, SuiteOption
from fscale.farm.answer import CRASH_FILE
from fscale.model import catalogue
from fscale.model.bundle import bundle
from fscale.model.errors import Exit, FscaleError
from fscale.model.helptext import GUESTS, REPEATED, TESTED
from fscale.model.limits import MOST_COUNT, MOST_JOBS, MOST_SEED
from fscale.model.variant import OF_FILESYSTEM, parse
from fscale.runner.request import parse_list
from fscale.system.outputs import directory_to_write
from fscale.vm import crash as crashes
from fscale.vm import crashload, kbuild, loads, untrusted
from fscale.vm import guest as guests
from fscale.vm.cli import FilesystemOption, finish, guest_files, prepare, show, start
from fscale.vm.module_build import check_own
from fscale.vm.options import GuestOptions, KernelTreeOption, guest_options
from fscale.vm.place import Job
from fscale.vm.steps import Steps
from fscale.vm.tasks import Elsewhere

# Options that a command does not know are passed to the guest.
PASSING_ON = {"allow_extra_args": True, "ignore_unknown_options": True}

_RUN_EPILOG = """
More examples:

    fscale vm run smoke --kernel-tree ~/linux --module my.ko --filesystem my.toml --fs my
"""
_AB_EPILOG = """
More examples:

    fscale vm ab --slices --base kernel:6.1 --new kernel:6.12 --workload MWCL --output results/k
    fscale vm ab --base my:module=old.ko --new my:module=new.ko --filesystem my.toml --output X

A side is FS-OR-FILE[:mount=OPTIONS][:mkfs=ARGUMENTS][:kernel=KERNEL][:module=FILE], or
kernel:KERNEL[:module=FILE] with the file systems of the suite or of --fs.
KERNEL is as in `fscale vm run --kernel`, and bookworm for a side that has none.
"""
_KERNEL_EPILOG = """
More examples:

    fscale vm run quick --kernel-tree $(fscale vm kernel build trixie --config lockstat)
"""
_CRASH_EPILOG = """
More examples:

    fscale vm crash --fs ext4 --plant lost-flush    # proves that the test detects faults
    fscale vm crash --fs lanefs --remount journal=serial --remount journal=concurrent
"""

app = typer.Typer(
    no_args_is_help=True,
    help="Run a suite in a QEMU guest: another kernel, a module under test, more CPUs.",
)

kernel_app = typer.Typer(no_args_is_help=True, help="Build kernels for guests.")
module_app = typer.Typer(no_args_is_help=True, help="Build modules under test.")
app.add_typer(kernel_app, name="kernel")
app.add_typer(module_app, name="module")


@app.command(context_settings=PASSING_ON, epilog=_RUN_EPILOG)
@guest_options(timeout=6 * 3600)
def run(
    context: typer.Context,
    *,
    suite: SuiteArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            callback=directory_to_write,
            metavar="DIR",
            help="Results directory, created if missing. An interrupted run in it is resumed. "
            "Default: results/vm-DATE-TIME.",
        ),
    ] = None,
    filesystem: FilesystemOption = None,
    guest: GuestOptions,
) -> None:
    """Run a suite in a guest; all other options are passed to `fscale run` in the guest.

    Example: fscale vm run quick --kernel trixie --smp 4 --fs f2fs,ext4

    The first call takes minutes: it puts a Debian root, the kernel and QEMU into a cache. Values
    from an emulated guest are meaningful only as ratios, which the results say.

    Exit codes: those of `fscale run` in the guest. 1 also if the guest ended early, such as by a
    panic, a hang or --timeout; the message names the reason.
    """
    names = suite_in_guest(suite, context.args, filesystem or []).filesystems
    check_own(filesystem or [], names)
    for name in names:
        parse(name).refuse_but(OF_FILESYSTEM, "--fs in a guest")
    files, inside = guest_files(suite, filesystem)
    own, arguments = loads.files_for_guest(context.args)
    if guest.deterministic and guest.smp != 1:
        Console(stderr=True).print(
            "--deterministic: the virtual CPUs take turns, so no curve scales"
        )
    if output is None:
        output = Path("results") / f"vm-{datetime.now():%Y%m%d-%H%M%S}"
    job = Job(
        argv=["python3", "-m", "fscale", "run", inside, "--output", "/results", *arguments],
        output=output.resolve(),
        files=files | own,
    )
    finish(start(job, guest, filesystems=names, own=filesystem or []))
    if not guest.dry_run:
        typer.echo(output)


@app.command("exec", context_settings=PASSING_ON)
@guest_options(smp=2, memory="2G", timeout=600)
def execute(
    context: typer.Context,
    *,
    fs: Annotated[
        str | None,
        typer.Option(
            "--fs",
            metavar="FS,...",
            help="File systems, separated by commas, whose modules and tools are built from source "
            "and installed in the guest first.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            callback=directory_to_write,
            metavar="DIR",
            help="Directory of the host that is mounted on /results in the guest.",
        ),
    ] = None,
    guest: GuestOptions,
) -> None:
    """Run any command in a guest, as root.

    Example: fscale vm exec --kernel trixie --smp 8 -- lscpu

    This repository is in /fscale in the guest.

    Exit codes: those of the command. 1 also if the guest ended early, such as by a panic, a hang or
    --timeout; the message names the reason.
    """
    if not context.args:
        raise FscaleError(
            "the command to run is missing: fscale vm exec [OPTIONS] -- COMMAND [ARGUMENT]..."
        )
    names = parse_list("--fs", fs, catalogue.split_filesystems) or []
    for name in names:
        catalogue.load_filesystem(name)  # reports errors before a boot
    job = Job(argv=context.args, output=output.resolve() if output else None)
    finish(start(job, guest, filesystems=names))


@app.command("ab", context_settings=PASSING_ON, epilog=_AB_EPILOG)
@guest_options("kernel", "modules", "kernel_tree", "module")
@bundle("judged", JudgeOptions)
@bundle("written", OutputOptions)
def compare_kernels(
    context: typer.Context,
    *,
    base: Annotated[
        str,
        typer.Option(
            metavar="SIDE",
            help="Side A, the baseline, such as kernel:6.1; the syntax is described below.",
        ),
    ],
    new: Annotated[
        str,
        typer.Option(metavar="SIDE", help="Side B, which is judged, such as kernel:6.12."),
    ],
    output: ResultsOption,
    suite: SuiteOption = Path("quick"),
    filesystem: FilesystemOption = None,
    repetitions: FixedOption = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=MOST_SEED,
            metavar="N",
            help="Random seed for the order of boots.",
            rich_help_panel=REPEATED,
        ),
    ] = 1,
    slices: Annotated[
        bool,
        typer.Option(
            "--slices",
            help="Boot both sides at once and alternate between them: one is stopped while the "
            "other runs. Default: boot one side after the other.",
            rich_help_panel=REPEATED,
        ),
    ] = False,
    max_minutes: MinutesOption = 30,
    on: CountingOption = None,
    everything: AllOption = False,
    judged: JudgeOptions,
    written: OutputOptions,
    guest: GuestOptions,
) -> None:
    """Compare two kernels or modules in guests, with boots interleaved as A B B A.

    Example: fscale vm ab --base kernel:6.1 --new kernel:6.12 --fs ext4 --output results/kernels

    Each boot is one repetition. Boots continue until every point has a verdict or the time is up.
    All other options are passed to `fscale run` in the guests.

    Exit codes: 0: no regression. 1: a point is slower, or fails in NEW only. 2: wrong usage, or
    the sides cannot be compared. 3: interrupted; the same command resumes.
    """
    way = method_of(in_guests=True, slices=slices)
    refuse_unsupported(context, way)
    sides = parse(base), parse(new)
    refuse_here(*sides)
    way.refuse_others(*sides)
    settings, outputs = judged.settings, written.outputs
    measure_in_guests(
        *sides,
        suite,
        context.args,
        slices=slices,
        options=guest,
        output=output,
        seed=seed,
        settings=settings,
        minutes=max_minutes,
        repetitions=repetitions or 0,
        filesystems=filesystem,
        on=on,
    )
    judge(output, settings, outputs, everything)


def _words(option: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise FscaleError(f"{option} {text}: {error}; quote it as in a shell") from None
    if not words:
        raise FscaleError(f"{option} {text!r} names no command; give one, or leave it out")
    return words


@app.command(epilog=_CRASH_EPILOG)
@guest_options(smp=2, memory="3G")
def crash(
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
        typer.Option(
            min=1,
            max=MOST_COUNT,
            metavar="N",
            help="Number of crash points to test.",
            rich_help_panel=TESTED,
        ),
    ] = 200,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_JOBS,
            metavar="N",
            help="Number of processes that write concurrently.",
            rich_help_panel=TESTED,
        ),
    ] = 4,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=MOST_SEED,
            metavar="N",
            help="Random seed for the operations.",
            rich_help_panel=TESTED,
        ),
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
        typer.Option(
            min=0,
            max=MOST_COUNT,
            metavar="N",
            help="At each flush, also test N states in which a random part of the writes since the "
            "last flush is on the disk.",
            rich_help_panel=TESTED,
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
        typer.Option(
            "--output",
            callback=directory_to_write,
            metavar="DIR",
            help="Directory in which the findings and the console log are kept.",
        ),
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
        fsck=None if fsck is None else _words("--fsck", fsck),
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
        own = [Path(fs)] if catalogue.is_path(fs) else []
        boot, emulator = prepare(job, guest, steps, filesystems=[fs], own=own)
        if guest.dry_run:
            print_place(on, "guests that test parts of the points")
            show(boot, emulator)
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


@kernel_app.command("build", epilog=_KERNEL_EPILOG)
def kernel_build(
    source: Annotated[
        str,
        typer.Argument(
            help="Kernel source tree, or bookworm, trixie or sid for the source of that Debian "
            "suite."
        ),
    ],
    config_name: Annotated[
        str,
        typer.Option(
            "--config",
            metavar="NAME",
            help=f"Configuration: {', '.join(kbuild.configs())} (docs/design/guests.md).",
        ),
    ] = "default",
    jobs: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_JOBS,
            metavar="N",
            help="Compilers to run at the same time.",
            show_default="number of CPUs",
        ),
    ] = os.cpu_count() or 1,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the options of the configuration and exit."),
    ] = False,
) -> None:
    """Build a small kernel for guests and print the built tree, for --kernel-tree.

    Example: fscale vm kernel build trixie --config lockstat

    The build takes about ten minutes on two cores. An unchanged source is not built again.
    """
    if dry_run:
        typer.echo(kbuild.fragment(config_name))
        return
    typer.echo(kbuild.build_kernel(source, config_name, jobs, Steps(Console(stderr=True))))


@module_app.command("build")
def module_build(
    source: Annotated[Path, typer.Argument(help="Directory of the module, with its Makefile.")],
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel",
            metavar="KERNEL",
            help="Debian suite whose newest kernel the module is built for: bookworm (6.1), trixie "
            "(6.12) or sid.",
            rich_help_panel=GUESTS,
        ),
    ] = "",
    kernel_tree: KernelTreeOption = None,
) -> None:
    """Build an out-of-tree module for a kernel and print the .ko file, for --module.

    Example: fscale vm module build tests/fixtures/trivialfs --kernel trixie
    """
    if bool(kernel) == bool(kernel_tree):
        raise FscaleError(
            "the kernel is missing or given twice; give either --kernel or --kernel-tree"
        )
    steps = Steps(Console(stderr=True))
    target = kbuild.tree_target(kernel_tree) if kernel_tree else kbuild.latest(kernel, steps)
    for path in kbuild.build_module(source, target, steps):
        typer.echo(path)


def register(main: typer.Typer) -> None:
    """Add the command to `fscale`."""
    main.add_typer(app, name="vm")
