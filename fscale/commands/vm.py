# SPDX-License-Identifier: GPL-2.0-only
"""`fscale vm`: the suite in a QEMU guest, with any kernel and with modules under test."""

import json
import os
import shlex
import tempfile
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.ab.ways import refuse_here, refuse_unheeded, way_of
from fscale.commands.ab import judge, measure_in_guests
from fscale.commands.compare import AllOption
from fscale.commands.options.judge import JudgeOptions
from fscale.commands.options.output import OutputOptions
from fscale.model import catalogue
from fscale.model.bundle import bundle
from fscale.model.errors import Exit, FscaleError
from fscale.model.limits import MOST_COUNT, MOST_JOBS, MOST_MINUTES, MOST_REPETITIONS, MOST_SEED
from fscale.model.variant import OF_FILESYSTEM, parse
from fscale.system.outputs import directory_to_write
from vm import crash as crashes
from vm import crashload, kbuild, untrusted
from vm.cli import FilesystemOption, finish, guest_files, start
from vm.module_build import wanted
from vm.options import GuestOptions, KernelTreeOption, guest_options
from vm.place import Job
from vm.steps import Steps

# What a command does not know goes to the guest.
PASSING_ON = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    no_args_is_help=True,
    help="Run the suite in a guest: another kernel, a module under test, F2FS, more CPUs.",
)

kernel_app = typer.Typer(no_args_is_help=True, help="Kernels for guests.")
module_app = typer.Typer(no_args_is_help=True, help="Modules under test.")
app.add_typer(kernel_app, name="kernel")
app.add_typer(module_app, name="module")


@app.command(context_settings=PASSING_ON)
@guest_options(timeout=6 * 3600)
def run(
    context: typer.Context,
    *,
    suite: Annotated[Path, typer.Argument(help="A suite's TOML file or name, as for fscale run.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            callback=directory_to_write,
            help="Results directory; an interrupted run in it is resumed.",
        ),
    ] = None,
    filesystem: FilesystemOption = None,
    guest: GuestOptions,
) -> None:
    """Run a suite in a guest; every other option goes to `fscale run` in there.

    The first call sets up a Debian root, the kernel and QEMU in the cache (minutes). Figures from
    an emulated guest are good for ratios only; the results say so.

    Examples:

        fscale vm run quick --kernel trixie --smp 4 --fs f2fs,ext4

        fscale vm run smoke --kernel-tree ~/linux --module my.ko --filesystem my.toml --fs my
    """
    files, inside = guest_files(suite, filesystem)
    if guest.deterministic and guest.smp != 1:
        Console(stderr=True).print(
            "--deterministic: the vCPUs take turns, so figures of several cores show no scaling"
        )
    if output is None:
        output = Path("results") / f"vm-{datetime.now():%Y%m%d-%H%M%S}"
    job = Job(
        argv=["python3", "-m", "fscale", "run", inside, "--output", "/results", *context.args],
        output=output.resolve(),
        files=files,
    )
    names = wanted(suite, context.args)
    for name in names:
        parse(name).refuse_but(OF_FILESYSTEM, "--fs in a guest")
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
        typer.Option("--fs", help="Build and load what these file systems bring in source."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            callback=directory_to_write,
            help="A host directory that is /results in there.",
        ),
    ] = None,
    guest: GuestOptions,
) -> None:
    """Run any command in a guest, as root, with the repository in /fscale.

    Example:

        fscale vm exec --kernel trixie --smp 8 -- lscpu
    """
    if not context.args:
        raise FscaleError("no command: fscale vm exec [OPTIONS] -- COMMAND [ARGUMENT]...")
    job = Job(argv=context.args, output=output.resolve() if output else None)
    finish(start(job, guest, filesystems=catalogue.split_filesystems(fs) if fs else ()))


@app.command("ab", context_settings=PASSING_ON)
@guest_options("kernel", "modules", "kernel_tree", "module", "dry_run")
@bundle("judged", JudgeOptions)
@bundle("written", OutputOptions)
def compare_kernels(
    context: typer.Context,
    *,
    base: Annotated[str, typer.Option(help="Side A: kernel:KERNEL[:module=KO] or FS:kernel=...")],
    new: Annotated[str, typer.Option(help="Side B, in the same way.")],
    output: Annotated[
        Path,
        typer.Option(
            callback=directory_to_write,
            help="Results directory; an interrupted run in it is resumed.",
        ),
    ],
    suite: Annotated[Path, typer.Option(help="A suite's name or TOML file.")] = Path("quick"),
    filesystem: FilesystemOption = None,
    repetitions: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST_REPETITIONS,
            help="Fixed boots per side (in slices pairs of boots); disables early stopping.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=MOST_SEED, help="Random seed of the order of boots.")
    ] = 1,
    slices: Annotated[
        bool,
        typer.Option(
            "--slices",
            help="Boot both sides at once and let them take turns, one stopped while the other "
            "runs, and judge after each pair of boots until it is decided.",
        ),
    ] = False,
    max_minutes: Annotated[
        float, typer.Option(min=0.1, max=MOST_MINUTES, help="Stop after this many minutes.")
    ] = 30,
    everything: AllOption = False,
    judged: JudgeOptions,
    written: OutputOptions,
    guest: GuestOptions,
) -> None:
    """Compare two kernels: boots interleaved as A B B A, one repetition a boot.

    Every other option goes to `fscale run` in the guests. It goes on until every point is decided
    or the time is spent. Exit codes as `fscale compare`.

    Example:

        fscale vm ab --base kernel:6.1 --new kernel:6.12 --fs ext4 --output results/kernels

        fscale vm ab --base my:module=old.ko --new my:module=new.ko --filesystem my.toml --output X
    """
    way = way_of(in_guests=True, slices=slices)
    refuse_unheeded(context, way)
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
    )
    judge(output, settings, outputs, everything)


@app.command()
@guest_options(smp=2, memory="3G")
def crash(
    *,
    fs: Annotated[str, typer.Option("--fs", help="As in fscale list filesystems.")],
    workload: Annotated[str, typer.Option(help=f"{', '.join(crashload.WORKLOADS)}.")] = "mix",
    points: Annotated[int, typer.Option(min=1, max=MOST_COUNT, help="Crash points to test.")] = 200,
    workers: Annotated[
        int, typer.Option(min=1, max=MOST_JOBS, help="Processes that write at once.")
    ] = 4,
    seed: Annotated[
        int, typer.Option(min=0, max=MOST_SEED, help="Random seed of the operations.")
    ] = 1,
    fsck: Annotated[
        str | None, typer.Option(help="Check command with {device}; must change nothing.")
    ] = None,
    mount_options: Annotated[
        str | None, typer.Option(help="Instead of the configured ones, separated by commas.")
    ] = None,
    plant: Annotated[
        str | None,
        typer.Option(help="A fault that the test must find: no-flush, lost-flush (see docs)."),
    ] = None,
    subsets: Annotated[
        int,
        typer.Option(
            min=0,
            max=MOST_COUNT,
            help="At each flush, also so many random parts of what it writes.",
        ),
    ] = 0,
    remount: Annotated[
        list[str] | None,
        typer.Option(help="Options of a remount while it runs; several take turns."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", callback=directory_to_write, help="Keep what was found."),
    ] = None,
    guest: GuestOptions,
) -> None:
    """Cut the power after every flush: does the file system keep what it promised?

    Records all writes of a workload that fsyncs, replays them up to each flush, mounts, compares
    with what was fsync'd, runs fsck. Exit code 1 and the first failing point when one fails.

    Examples:

        fscale vm crash --fs ext4 --points 200

        fscale vm crash --fs ext4 --plant lost-flush     (proves that the test finds faults)

        fscale vm crash --fs lanefs --remount journal=serial --remount journal=concurrent
    """
    spec = crashes.specify(
        catalogue.load_filesystem(fs),
        workload=workload,
        points=points,
        workers=workers,
        seed=seed,
        fsck=shlex.split(fsck) if fsck else None,
        mount_options=mount_options.split(",") if mount_options else None,
        plant=plant,
        subsets=subsets,
        remounts=remount,
    )
    with tempfile.TemporaryDirectory() as scratch:
        results = (output or Path(scratch) / "results").resolve()
        results.mkdir(parents=True, exist_ok=True)
        written = Path(scratch) / "crash-spec.json"
        found = results / "crash.json"
        untrusted.remove(found)
        written.write_text(json.dumps(asdict(spec), indent=1) + "\n")
        argv = ["python3", "-m", "vm.crashtest", f"/control/{written.name}", "/results/crash.json"]
        own = [Path(fs)] if fs.endswith(".toml") else []
        job = Job(argv=argv, output=results, files={written.name: written})
        outcome = start(job, guest, filesystems=[fs], own=own)
        if outcome is None:
            return
        if outcome.end != "finished":
            finish(outcome)
        result = crashes.load(found)
    typer.echo(crashes.verdict(Path(fs).stem, spec, result))
    if result.first:
        raise typer.Exit(Exit.FAILED)
    if result.tested < points:
        raise FscaleError(
            f"only {result.tested} of {points} crash points: the workload made too few flushes"
        )


@kernel_app.command("build")
def kernel_build(
    source: Annotated[
        str, typer.Argument(help="A kernel source tree, or bookworm, trixie, sid: Debian's source.")
    ],
    config_name: Annotated[
        str, typer.Option("--config", help=f"{', '.join(kbuild.configs())}.")
    ] = "default",
    jobs: Annotated[
        int, typer.Option(min=1, max=MOST_JOBS, help="Compilers at once.")
    ] = os.cpu_count() or 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the options only.")] = False,
) -> None:
    """Build a small kernel for guests; prints the built tree, for --kernel-tree.

    About ten minutes on two cores. An unchanged source is not built again.

    Example:

        fscale vm run quick --kernel-tree $(fscale vm kernel build trixie --config lockstat)
    """
    if dry_run:
        typer.echo(kbuild.fragment(config_name))
        return
    typer.echo(kbuild.build_kernel(source, config_name, jobs, Steps(Console(stderr=True))))


@module_app.command("build")
def module_build(
    source: Annotated[Path, typer.Argument(help="The module's directory, with its Makefile.")],
    kernel: Annotated[str, typer.Option("--kernel", help="bookworm, trixie, 6.1, 6.12, sid.")] = "",
    kernel_tree: KernelTreeOption = None,
) -> None:
    """Build an out-of-tree module for a kernel; prints the .ko, for --module.

    Example:

        fscale vm module build tests/fixtures/trivialfs --kernel trixie
    """
    if bool(kernel) == bool(kernel_tree):
        raise FscaleError("give --kernel or --kernel-tree")
    steps = Steps(Console(stderr=True))
    target = kbuild.tree_target(kernel_tree) if kernel_tree else kbuild.latest(kernel, steps)
    for path in kbuild.build_module(source, target, steps):
        typer.echo(path)


def register(main: typer.Typer) -> None:
    """Add the command to `fscale`."""
    main.add_typer(app, name="vm")
