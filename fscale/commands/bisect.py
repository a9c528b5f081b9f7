# SPDX-License-Identifier: GPL-2.0-only
"""`fscale bisect`: one step of `git bisect run`."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fscale.analysis.compare.model import Comparison
from fscale.analysis.compare.settings import Settings
from fscale.analysis.metrics import CPU_EFFICIENCY, INSTRUCTIONS, NAMED, THROUGHPUT
from fscale.commands.options.booted import ControlOptions, compare_boots
from fscale.commands.options.bundle import bundle
from fscale.commands.options.given import refuse_given
from fscale.commands.options.guest import FilesystemOption
from fscale.commands.options.in_guest import comparison_in_guests
from fscale.commands.options.judge import JudgeOptions
from fscale.commands.options.kinds import output_directory
from fscale.commands.options.measure import PairedOptions
from fscale.commands.options.on import BisectOption, check_workers
from fscale.commands.options.shared import AllowOption, MinutesOption
from fscale.farm.bootable import Broken
from fscale.model.errors import FscaleError
from fscale.model.terminal import terminal
from fscale.model.variant import Variant, parse
from fscale.runner.request import Request
from fscale.runner.session import this_machine_held
from fscale.vm.guest import GuestError
from fscale.vm.request import GuestRequest
from fscale.vm.tasks import BootFailed

GOOD, BAD, SKIP, ABORT = 0, 1, 125, 128
"""Exit codes for git bisect: 1 to 124, 126 and 127 are bad; from 128 on it stops."""

_EPILOG = """
More examples:

    git bisect run fscale bisect --reference /srv/results/v6.17 --output /srv/bisect \\
        -- ./build-and-run {output}

The sides have the syntax of `fscale ab`. {output} stands for the directory of the commit.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bisect", epilog=_EPILOG)(_bisect)


@bundle("measured", PairedOptions)
@bundle("controlled", ControlOptions)
@bundle("judged", JudgeOptions, "count_margin")
def _bisect(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="Command that builds the commit; with --reference it also measures the commit "
            "into {output}.",
        ),
    ] = None,
    *,
    output: Annotated[
        Path,
        output_directory("Directory for results; each commit gets a subdirectory."),
    ],
    base: Annotated[
        str | None, typer.Option(metavar="SIDE", help="Side A, the good one, as for `fscale ab`.")
    ] = None,
    new: Annotated[
        str | None,
        typer.Option(metavar="SIDE", help="Side B, which the command builds, as for `fscale ab`."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Results of the good commit, instead of --base and --new."
        ),
    ] = None,
    max_minutes: MinutesOption = 30,
    filesystem: FilesystemOption = None,
    allow_different: AllowOption = None,
    on: BisectOption = None,
    measured: PairedOptions,
    controlled: ControlOptions,
    judged: JudgeOptions,
) -> None:
    """Build the commit that is checked out and judge it: one step of `git bisect run`.

    Example: git bisect run fscale bisect --base ./my.toml:kernel=6.12:module=good.ko
    --new ./my.toml:kernel=6.12:module=my.ko --output /srv/bisect -- make my.ko

    With --on ssh:HOST, sides with kernels boot in turn on that machine; the command builds here.
    Sides in guests are measured in slices. In guests without KVM, counted instructions are judged
    unless --metric says otherwise.

    Exit codes, as git expects them: 0: nothing is slower (good). 1: something is slower or broken
    (bad). 125: the commit does not build, or the data cannot tell (skip). 128: wrong usage,
    interrupted, or this machine cannot measure; the bisection stops.
    """
    from fscale.ab.methods import PairedMethod, method_of  # noqa: PLC0415

    console = terminal(error=True)
    settings = judged.settings.model_copy(update={"allow_different": tuple(allow_different or ())})
    try:
        results = output / _commit()
        if not _sides_given(base, new, reference):
            raise FscaleError("give either --base and --new, or --reference with a command")
        if reference and not command:
            raise FscaleError("--reference needs a command after `--` that measures into {output}")
        sides = [parse(text) for text in (base, new) if text is not None]
        in_guests = any(side.of_guest for side in sides)
        method = (
            PairedMethod.REFERENCE
            if reference
            else method_of(in_guests=in_guests, slices=in_guests, on=on)
        )
        refuse_given(context, method.unsupported, method.title)
        method.refuse_others(*sides)
        if not in_guests:
            refuse_given(context, ("on",), method.title)
        argv = [part.replace("{output}", str(results)) for part in command or []]
        if argv and subprocess.run(argv, check=False).returncode != 0:
            console.print(f"fscale: {argv[0]} failed: this commit is skipped", markup=False)
            raise typer.Exit(SKIP)
        if reference:
            comparison = _compare(reference, results, settings)
        elif on is not None and method is PairedMethod.MACHINE_BOOTS:
            compare_boots(
                sides[0],
                sides[1],
                measured,
                on=on,
                controls=controlled.controls,
                output=results,
                seed=None,
                settings=settings,
                repetitions=0,
                seconds=60 * max_minutes,
                bisecting=True,
            )
            comparison = _compare(results, None, settings)
        elif in_guests:
            check_workers(on)
            judged_by = _measure_in_guests(
                sides, measured, results, settings, max_minutes, filesystem or [], on
            )
            comparison = _compare(results, None, judged_by)
        else:
            request = measured.paired_request(results, None, settings.metrics)
            comparison = _measure(request, sides, settings, max_minutes, measured.wait)
    except (GuestError, BootFailed, Broken) as error:
        console.print(f"fscale: {error}: this commit is skipped", markup=False, soft_wrap=True)
        raise typer.Exit(SKIP) from None
    except (FscaleError, OSError) as error:
        console.print(f"fscale: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(ABORT) from None
    raise typer.Exit(verdict(comparison))


def _sides_given(base: str | None, new: str | None, reference: Path | None) -> bool:
    return {base is None, new is None} == {reference is not None}


def _commit() -> str:
    argv = ["git", "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FscaleError(
            f"{Path.cwd()} is not in a git repository; start `git bisect run` inside one"
        )
    return done.stdout.strip()


def _compare(base: Path, new: Path | None, settings: Settings) -> Comparison:
    from fscale.analysis.compare.compare import compare  # noqa: PLC0415
    from fscale.analysis.compare.sides import open_sides  # noqa: PLC0415
    from fscale.analysis.formats.comparison import print_table  # noqa: PLC0415

    comparison = compare(open_sides(base, new), settings)
    print_table(comparison)
    return comparison


def _measure(
    request: Request, sides: list[Variant], settings: Settings, minutes: float, wait: float
) -> Comparison:
    from fscale.ab.plan import make  # noqa: PLC0415
    from fscale.ab.run import execute  # noqa: PLC0415

    base, new = sides
    with this_machine_held(wait) as signals:
        plan = make(request, base, new, settings, 0, slices=None)
        execute(replace(plan, one_is_enough=True), signals, 60 * minutes)
    return _compare(request.output, None, settings)


def _measure_in_guests(
    sides: list[Variant],
    measured: PairedOptions,
    output: Path,
    settings: Settings,
    minutes: float,
    filesystems: list[Path],
    on: str | None,
) -> Settings:
    """Measure in slices, and return the settings to judge by, which may have fewer metrics."""
    from fscale.ab.guest_run import execute  # noqa: PLC0415

    base, new = sides
    comparison = comparison_in_guests(
        base,
        new,
        measured,
        slices=True,
        options=GuestRequest(smp=measured.guest_cpus or GuestRequest.smp),
        output=output,
        seed=1,
        settings=settings,
        filesystems=filesystems,
        bisecting=True,
        on=on,
    )
    with comparison as source:
        execute(source, 60 * minutes)
    return source.plan.settings


def verdict(comparison: Comparison) -> int:
    """Return the exit code for git: bad, good, or skip.

    Bad if anything is slower or broken; good if every rate, or named metric, has a verdict. A point
    that was lost for another reason than a fault of the file system (a tool is missing, the run was
    cut short) says nothing about the commit.
    """
    if comparison.count("slower") or comparison.of_kind("broken"):
        return BAD
    metrics = (THROUGHPUT, CPU_EFFICIENCY, INSTRUCTIONS, *NAMED)
    rates = [j.verdict for j in comparison.judgements if j.metric in metrics]
    return SKIP if "undecided" in rates or comparison.of_kind("lost") or not rates else GOOD
