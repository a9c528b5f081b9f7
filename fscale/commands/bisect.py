# SPDX-License-Identifier: GPL-2.0-only
"""`fscale bisect`: one step of `git bisect run`."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscale.analysis.compare.model import Comparison
from fscale.analysis.compare.settings import Settings
from fscale.analysis.metrics import CPU_EFFICIENCY, INSTRUCTIONS, NAMED, THROUGHPUT
from fscale.commands.options.booted import ControlOptions, compare_boots
from fscale.commands.options.bundle import bundle
from fscale.commands.options.given import refuse_given
from fscale.commands.options.guest import FilesystemOption
from fscale.commands.options.helptext import OUTPUT
from fscale.commands.options.in_guest import comparison_in_guests
from fscale.commands.options.judge import JudgeOptions
from fscale.commands.options.kinds import output_directory
from fscale.commands.options.measure import PairedOptions
from fscale.commands.options.on import BisectOption, check_workers
from fscale.commands.options.shared import AllowOption, MinutesOption
from fscale.commands.options.submission import SubmissionOptions
from fscale.farm.bootable import Broken
from fscale.model.errors import FscaleError, Interrupted
from fscale.model.terminal import say, terminal
from fscale.model.variant import Variant, parse
from fscale.runner.request import Request
from fscale.runner.session import this_machine_held
from fscale.vm.guest import GuestError
from fscale.vm.request import GuestRequest
from fscale.vm.tasks import BootFailed

if TYPE_CHECKING:
    from fscale.analysis.formats.comparison import Outputs

GOOD, BAD, SKIP, ABORT = 0, 1, 125, 128
"""Exit codes for git bisect: 1 to 124, 126 and 127 are bad; from 128 on it stops."""
SHORT = 12
"""characters of a commit's hash that name its directory"""

_EPILOG = """
More examples:

    git bisect run fscale bisect --reference /srv/results/v6.17 --output /srv/bisect \\
        -- ./build-and-run {output}

The sides have the syntax of `fscale ab`. {output} stands for the directory of the commit.
"""


class _BuildError(Exception):
    """The command that builds the commit failed."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bisect", epilog=_EPILOG)(_bisect)


@bundle("measured", PairedOptions)
@bundle("controlled", ControlOptions)
@bundle("judged", JudgeOptions, "count_margin")
@bundle("submitted", SubmissionOptions, "build_id", "checkout_id", "commit")
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
    kcidb: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write JSON for KernelCI to this file, such as {output}/kcidb.json: one test per "
            "verdict on the commit.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    measured: PairedOptions,
    controlled: ControlOptions,
    judged: JudgeOptions,
    submitted: SubmissionOptions,
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
    from fscale.analysis.formats.comparison import Outputs  # noqa: PLC0415

    console = terminal(error=True)
    settings = judged.over(Settings(allow_different=tuple(allow_different or ())))
    outputs = Outputs()
    try:
        submitted.refuse_unwritten(kcidb is not None)
        commit = _commit()
        results = output / commit[:SHORT]
        if kcidb:
            outputs = Outputs(
                kcidb=Path(str(kcidb).replace("{output}", str(results))),
                submission=replace(submitted, commit=commit).submission,
            )
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
            raise _BuildError(f"{argv[0]} failed")
        if on is not None and method is PairedMethod.MACHINE_BOOTS:
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
        elif in_guests:
            check_workers(on)
            settings = _measure_in_guests(
                sides, measured, results, settings, max_minutes, filesystem or [], on
            )
        elif not reference:
            request = measured.paired_request(results, None, settings.metrics)
            _measure(request, sides, settings, max_minutes, measured.wait)
        judged_sides = (reference, results) if reference else (results, None)
        comparison = _compare(judged_sides, settings, outputs)
    except (_BuildError, GuestError, BootFailed, Broken) as error:
        console.print(f"fscale: {error}: this commit is skipped", markup=False, soft_wrap=True)
        raise typer.Exit(_file_unjudged(outputs, error)) from None
    except (FscaleError, Interrupted, OSError) as error:
        console.print(f"fscale: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(ABORT) from None
    raise typer.Exit(verdict(comparison))


def _sides_given(base: str | None, new: str | None, reference: Path | None) -> bool:
    return {base is None, new is None} == {reference is not None}


def _commit() -> str:
    """The full hash of the commit that is checked out."""
    argv = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FscaleError(
            f"{Path.cwd()} is not in a git repository; start `git bisect run` inside one"
        )
    return done.stdout.strip()


def _compare(
    judged: tuple[Path, Path | None], settings: Settings, outputs: "Outputs"
) -> Comparison:
    from fscale.analysis.compare.compare import compare  # noqa: PLC0415
    from fscale.analysis.compare.sides import open_sides  # noqa: PLC0415
    from fscale.analysis.formats.comparison import write  # noqa: PLC0415

    sides = open_sides(*judged)
    comparison = compare(sides, settings)
    write(comparison, outputs, sides)
    return comparison


def _file_unjudged(outputs: "Outputs", error: Exception) -> int:
    """Write why there is no verdict, if verdicts are to be written; return the exit code."""
    from fscale.analysis.formats.comparison import write_text  # noqa: PLC0415
    from fscale.analysis.formats.kcidb import render_unjudged  # noqa: PLC0415

    if outputs.kcidb is not None:
        build_failed = isinstance(error, _BuildError)
        text = render_unjudged(outputs.submission, str(error), build_failed=build_failed)
        try:
            outputs.kcidb.parent.mkdir(parents=True, exist_ok=True)
            write_text(outputs.kcidb, text)
        except OSError as failed:
            say(f"fscale: cannot write {outputs.kcidb}: {failed.strerror}", error=True)
            return ABORT
    return SKIP


def _measure(
    request: Request, sides: list[Variant], settings: Settings, minutes: float, wait: float
) -> None:
    from fscale.ab.plan import make  # noqa: PLC0415
    from fscale.ab.run import execute  # noqa: PLC0415

    base, new = sides
    with this_machine_held(wait) as signals:
        plan = make(request, base, new, settings, 0, slices=None)
        execute(replace(plan, one_is_enough=True), signals, 60 * minutes)


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
