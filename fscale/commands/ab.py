# SPDX-License-Identifier: GPL-2.0-only
"""`fscale ab`: measures both sides in alternation until each point has a verdict."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscale.analysis.compare.settings import Settings
from fscale.commands.options.booted import ControlOptions, compare_boots
from fscale.commands.options.bundle import bundle
from fscale.commands.options.given import is_given, refuse_given
from fscale.commands.options.guest import FilesystemOption, GuestOptions, guest_options
from fscale.commands.options.helptext import REPEATED
from fscale.commands.options.in_guest import comparison_in_guests
from fscale.commands.options.judge import JudgeOptions
from fscale.commands.options.kinds import number
from fscale.commands.options.measure import PairedOptions
from fscale.commands.options.on import (
    AbOption,
    check_nodes,
    check_workers,
    nodes_of,
    print_place,
    refuse_machine,
)
from fscale.commands.options.output import OutputOptions, judge_paired
from fscale.commands.options.paired import (
    BaseOption,
    DryRunOption,
    NewOption,
    SlicesOption,
    warn_ignored_duration,
)
from fscale.commands.options.shared import (
    AllOption,
    MinutesOption,
    ResultsOption,
    RunSeedOption,
)
from fscale.model.limits import MOST_REPETITIONS
from fscale.model.terminal import print_line
from fscale.model.variant import parse
from fscale.runner.session import this_machine_held
from fscale.runner.signals import Signals

if TYPE_CHECKING:
    from fscale.ab.plan import Plan

_EPILOG = """
More examples:

    fscale ab --base xfs --new xfs:mount=wsync --cores 1,2 --max-minutes 20 --output results/wsync
    fscale ab --base ext4 --new ext4:mount=nodelalloc --workload MWCL --whole --output results/w
    fscale ab --base ext4 --new 'ext4:mkfs=-O ^has_journal' --repetitions 10 --output results/nj
    fscale ab --base ext4 --new ext4:set=/proc/sys/vm/dirty_background_ratio=1 --output results/d
    fscale ab --base xfs --new xfs:mount=wsync --on slurm:PARTITION --output results/node
    fscale ab --slices --base kernel:6.1 --new kernel:6.12 --fs ext4 --output results/kernels
    fscale ab --base my:module=old.ko --new my:module=new.ko --filesystem my.toml --output X

A side is FS-OR-FILE[:PARTITIONS][:mount=OPTIONS][:mkfs=ARGUMENTS][:set=FILE=VALUE]
[:aged=PROFILE][:binary=FILE].

mount= and mkfs= add to the options and arguments that the file system has in its TOML file. set=
writes VALUE to a file below /sys or /proc/sys while the file system is mounted and restores it
afterwards; {name} in it stands for the device. aged= is what the file system has been through: a
profile of configs/aging, or a TOML file. binary= is another microbenchmark. A side with
:kernel=KERNEL or :module=FILE is measured in a guest, and so is kernel:KERNEL[:module=FILE], with
the file systems of the suite or of --fs. KERNEL is as in `fscale vm run --kernel`, and bookworm for
a side with :module=FILE alone; :modules=PATH is as --modules there.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ab", epilog=_EPILOG)(_ab)


@bundle("measured", PairedOptions)
@guest_options("kernel", "modules", "kernel_tree", "module", "dry_run")
@bundle("controlled", ControlOptions)
@bundle("judged", JudgeOptions)
@bundle("written", OutputOptions)
def _ab(
    context: typer.Context,
    base: BaseOption,
    new: NewOption,
    output: ResultsOption = Path("results/DATE-ab"),
    *,
    filesystem: FilesystemOption = None,
    repetitions: Annotated[
        int | None,
        number(
            2,
            MOST_REPETITIONS,
            "Fixed number of repetitions per side, or of pairs in slices; disables early "
            "stopping. In guests a repetition is a boot.",
            REPEATED,
        ),
    ] = None,
    max_minutes: MinutesOption = 30,
    seed: RunSeedOption = None,
    slices: SlicesOption = None,
    everything: AllOption = False,
    on: AbOption = None,
    dry_run: DryRunOption = False,
    measured: PairedOptions,
    guest: GuestOptions,
    controlled: ControlOptions,
    judged: JudgeOptions,
    written: OutputOptions,
) -> None:
    """Measure two variants of a file system in alternation and judge the difference.

    Example: fscale ab --base ext4 --new ext4:mount=data=journal --output results/journal

    The sides are interleaved as A B B A, so that drift of the machine affects both equally. A point
    is measured until it has a verdict or the time is up. The false discovery rate accounts for
    these repeated tests (docs/design/statistics.md).

    Sides with kernels or modules are measured in guests, where each boot is one repetition. There,
    --seed is 1 by default, and --smp the largest number in --cores.

    Exit codes: 0: no regression. 1: a point is slower, or fails in NEW only. 2: wrong usage, or
    the sides cannot be compared. 3: interrupted; the same command resumes.
    """
    from fscale.ab import guest_run, run, tasks  # noqa: PLC0415 - import the statistics
    from fscale.ab.methods import PairedMethod, method_of  # noqa: PLC0415
    from fscale.ab.plan import make  # noqa: PLC0415

    settings, outputs = judged.over(Settings()), written.outputs
    sides = parse(base), parse(new)
    in_guests = any(side.of_guest for side in sides)
    method = method_of(in_guests=in_guests, slices=slices, on=on)
    refuse_given(context, method.unsupported, method.title)
    method.refuse_others(*sides)
    on_machine = method is PairedMethod.MACHINE_BOOTS
    if not in_guests:
        refuse_machine(on)
    (check_workers if in_guests and not on_machine else check_nodes)(on)
    seconds = 60 * max_minutes
    if on is not None and on_machine:
        compare_boots(
            *sides,
            measured,
            on=on,
            controls=controlled.controls,
            output=output,
            seed=seed,
            settings=settings,
            repetitions=repetitions or 0,
            seconds=seconds,
        )
    elif in_guests:
        if not is_given(context, "smp"):
            guest = replace(guest, smp=measured.guest_cpus or guest.smp)
        comparison = comparison_in_guests(
            *sides,
            measured,
            slices=bool(slices),
            options=guest,
            output=output,
            seed=1 if seed is None else seed,
            settings=settings,
            repetitions=repetitions or 0,
            filesystems=filesystem or [],
            on=on,
        )
        with comparison as source:
            if dry_run:
                print_place(on, "each pair of guests")
                guest_run.preview(source)
                return
            guest_run.execute(source, seconds)
    else:
        request = measured.paired_request(output, seed, settings.metrics)

        def plan() -> "Plan":
            made = make(request, *sides, settings, repetitions or 0, slices=slices)
            warn_ignored_duration(made, measured.duration)
            return made

        if dry_run:
            print_place(on, "the comparison")
            run.preview(plan(), print_line)
            return
        if on is not None:
            asked = tasks.Asked(*sides, settings, repetitions or 0, slices, seconds, measured.wait)
            with Signals().installed(), nodes_of(on) as engine:
                tasks.measure_on(engine, request, asked)
        else:
            with this_machine_held(measured.wait) as signals:
                run.execute(plan(), signals, seconds)
    judge_paired(output, settings, outputs, everything)
