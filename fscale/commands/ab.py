# SPDX-License-Identifier: GPL-2.0-only
"""`fscale ab`: both sides interleaved on this machine, until the data decide."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from analysis.compare.repetitions import minimum_repetitions
from analysis.compare.settings import Settings
from apps.adapter import loads
from fscale.commands.compare import (
    AllOption,
    CountMarginOption,
    FdrOption,
    HtmlOption,
    JunitOption,
    KtapOption,
    MailOption,
    MarginOption,
    MarkdownOption,
    MetricOption,
    outputs_of,
    settings_of,
)
from fscale.commands.history import JsonFlag
from fscale.commands.list import complete_media, complete_suites
from fscale.commands.run import (
    CoresOption,
    DeviceOption,
    ModeOption,
    RunSeedOption,
    SetOption,
    WorkloadOption,
    YesFormatOption,
)
from fscale.model import catalogue, paths
from fscale.model.errors import Exit, FscaleError
from fscale.model.limits import MOST_MINUTES, MOST_REPETITIONS, MOST_SECONDS
from fscale.model.terminal import say
from fscale.model.variant import Variant, parse
from fscale.runner.dry import tell
from fscale.runner.request import (
    Request,
    named_in,
    parse_cores,
    parse_settings,
    read_suite,
)
from fscale.system.outputs import directory_to_write
from vm.cli import guest_files
from vm.options import GuestOptions
from vm.steps import Steps

if TYPE_CHECKING:
    from fscale.ab.plan import Plan

_EPILOG = """
Examples:\n\n
fscale ab --base ext4 --new ext4:mount=data=journal --workload DWSL --output results/journal\n\n
fscale ab --base xfs --new xfs:mount=wsync --cores 1,2 --max-minutes 20 --output results/wsync\n\n
fscale ab --base ext4 --new ext4:mount=nodelalloc --workload MWCL --whole --output results/w\n\n
fscale ab --base ext4 --new 'ext4:mkfs=-O ^has_journal' --repetitions 10 --output results/nj\n\n
fscale ab --base ext4 --new ext4:set=/proc/sys/vm/dirty_background_ratio=1 --output results/d\n\n
fscale ab --base kernel:6.1 --new kernel:6.12 --workload MWCL --output results/guests\n\n
A side is FS-OR-FILE[:PARTITIONS][:mount=OPTIONS][:mkfs=ARGUMENTS][:set=FILE=VALUE][:binary=FILE].
Options and arguments are merged into those of the file system; set= writes a file below /sys or
/proc/sys while it is mounted ({name} in it stands for the device) and puts it back; binary= is
another microbenchmark. With [:kernel=KERNEL][:module=FILE], or as kernel:KERNEL, it is measured in
a guest.
"""

SuiteOption = Annotated[
    Path,
    typer.Option(help="What to measure: a suite, by file or name.", autocompletion=complete_suites),
]
MediaOption = Annotated[
    str | None,
    typer.Option(help="Medium, as in `fscale list media`.", autocompletion=complete_media),
]
DurationOption = Annotated[
    float | None,
    typer.Option(min=0.001, max=MOST_SECONDS, help="Timed seconds per repetition."),
]
DirOption = Annotated[
    Path | None, typer.Option("--dir", help="Measure in this directory, without root.")
]
WaitOption = Annotated[
    float,
    typer.Option(
        min=0, max=MOST_SECONDS, help="Seconds to wait for another run to leave the machine."
    ),
]
BinaryOption = Annotated[Path, typer.Option(help="The microbenchmark.")]
SlicesOption = Annotated[
    bool | None,
    typer.Option(
        "--slices/--whole",
        help="Mount both sides at once and let them take turns of milliseconds, or measure whole "
        "repetitions in turn. By default in slices where they can be; --slices insists.",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Only print the commands of the first round.")
]


# Suite keys that are no matter of the suite in a paired run.
OWN = {"filesystems", "repetitions", "profile_repetitions"}


def request_of(
    suite: Path,
    output: Path,
    *,
    workload: str | None,
    cores: str | None,
    media: str | None,
    mode: str | None,
    duration: float | None,
    settings: list[str] | None,
    seed: int | None,
    device: Path | None,
    yes_format: str | None,
    directory: Path | None,
    binary: Path,
) -> Request:
    """A request for one side; its file system comes later."""
    asked: dict[str, Any] = {
        "workloads": workload.split(",") if workload else None,
        "cores": None if cores is None else parse_cores(cores),
        "media": [media] if media else None,
        "modes": mode.split(",") if mode else None,
        "duration": duration,
        "profiles": [],
    }
    overrides = {name: value for name, value in asked.items() if value is not None}
    overrides |= parse_settings(settings or [], overrides)
    if own := sorted(OWN & overrides.keys()):
        raise FscaleError(
            f"--set {own[0]}: paired runs decide that themselves; the sides name the file systems, "
            "--repetitions says how many, and nothing is profiled"
        )
    request = Request(
        suite=suite,
        output=output,
        overrides=overrides,
        explicit=named_in(overrides),
        seed=seed,
        device=device,
        yes_format=yes_format,
        directory=directory,
        binary=binary,
        applications=loads,
    )
    read_suite(request)  # what is wrong in it is said before another run is waited for
    return request


def refuse_few_boots(repetitions: int, settings: Settings) -> None:
    """FscaleError where so many boots a side could find no change, not even of a single point."""
    fewest = minimum_repetitions(settings, 1, interleaved=True)
    if 0 < repetitions < fewest:
        raise FscaleError(
            f"--repetitions {repetitions}: the change of a single point is found with {fewest} "
            f"boots of each side or more; give --repetitions {fewest}, or leave it out "
            f"({GUEST_REPETITIONS})"
        )


# Boots of each side: a few points need seven repetitions at the default error rate.
GUEST_REPETITIONS = 8


def guest_arguments(
    *,
    workload: str | None,
    cores: str | None,
    media: str | None,
    mode: str | None,
    duration: float | None,
    settings: list[str] | None,
) -> list[str]:
    """The options of `fscale run` in a guest."""
    options = {"workload": workload, "cores": cores, "media": media, "mode": mode}
    options["duration"] = None if duration is None else str(duration)
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    return given + [f"--set={text}" for text in settings or []]


def say_unheeded_duration(plan: "Plan", duration: float | None) -> None:
    """Say of which points a duration is not, as they take turns."""
    sliced = dict.fromkeys(pair.base.workload for pair in plan.pairs if pair.slicing)
    if duration is not None and sliced:
        say(
            f"note: --duration is not of {', '.join(sliced)}: what takes turns works as long as "
            "they take; --whole measures whole repetitions",
            error=True,
        )


def options_for(cores: str | None) -> GuestOptions:
    """Guests with as many CPUs as are measured at most, where the numbers are given."""
    counts = [int(part) for part in (cores or "").split(",") if part.isdigit()]
    return GuestOptions(smp=max(counts)) if counts else GuestOptions()


def handed_in(
    suite: Path, filesystems: list[Path] | None, *sides: Variant
) -> tuple[dict[str, Path], str]:
    """The files that guests get, and the suite as its name is in there; FscaleError."""
    own = [side.own_file for side in sides if side.own_file]
    for side in sides:
        if side.own_file:
            catalogue.load_filesystem(side.filesystem)  # what is wrong is said before a boot
    return guest_files(suite, list(dict.fromkeys([*(filesystems or []), *own])))


def measure_pairs(
    base: Variant,
    new: Variant,
    suite: Path,
    given: Sequence[str],
    *,
    options: GuestOptions,
    output: Path,
    seed: int,
    settings: Settings,
    minutes: float,
    repetitions: int = 0,
    filesystems: list[Path] | None = None,
    bisecting: bool = False,
) -> Settings:
    """Compare two guests in slices; `given` are options of `fscale run`, without the suite.

    `filesystems` are TOML files of the user's. Returns the settings to judge by, which may have
    fewer metrics where it is `bisecting`. Raises what `fscale.ab.guest_pairs` does.
    """
    from fscale.ab import guest_pairs  # noqa: PLC0415 - it brings in the statistics

    steps = Steps(Console(stderr=True))
    files, inside = handed_in(suite, filesystems, base, new)
    plan = guest_pairs.make(
        base,
        new,
        [inside, *given],
        files=files,
        options=options,
        output=output,
        seed=seed,
        settings=settings,
        repetitions=repetitions,
        steps=steps,
        bisecting=bisecting,
    )
    state = guest_pairs.measure(plan, 60 * minutes, steps)
    for reason in state.given_up.values():
        steps.note(f"given up: {reason}")
    if state.out_of_time:
        steps.note(f"the time is spent; {len(state.open)} points are undecided")
    return plan.settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ab", epilog=_EPILOG)(_ab)


def _ab(
    context: typer.Context,
    base: Annotated[str, typer.Option(help="Side A, as described below.")],
    new: Annotated[str, typer.Option(help="Side B, in the same way.")],
    output: Annotated[
        Path,
        typer.Option(
            callback=directory_to_write, help="Results directory; a run in it is continued."
        ),
    ],
    *,
    suite: SuiteOption = Path("quick"),
    workload: WorkloadOption = None,
    cores: CoresOption = None,
    media: MediaOption = None,
    mode: ModeOption = None,
    duration: DurationOption = None,
    suite_keys: SetOption = None,
    repetitions: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST_REPETITIONS,
            help="Fixed repetitions per side; disables early stopping.",
        ),
    ] = None,
    max_minutes: Annotated[
        float, typer.Option(min=0.1, max=MOST_MINUTES, help="Stop after so many minutes.")
    ] = 30,
    seed: RunSeedOption = None,
    device: DeviceOption = None,
    yes_format: YesFormatOption = None,
    directory: DirOption = None,
    binary: BinaryOption = paths.BENCH,
    wait: WaitOption = 0,
    slices: SlicesOption = None,
    metric: MetricOption = None,
    margin: MarginOption = None,
    count_margin: CountMarginOption = 0.01,
    fdr: FdrOption = 0.01,
    as_json: JsonFlag = False,
    junit: JunitOption = None,
    markdown: MarkdownOption = None,
    mail: MailOption = None,
    html: HtmlOption = None,
    ktap: KtapOption = None,
    everything: AllOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Compare two file systems, or two ways to mount or make one, interleaved as A B B A.

    It goes on until every point is decided or the time is spent; points that are decided are not
    measured any more. Looking at the data again and again is paid for in the error rates
    (docs/method.md). Exit codes as `fscale compare`.
    """
    from analysis.compare.compare import compare  # noqa: PLC0415
    from analysis.compare.outputs import show, write  # noqa: PLC0415
    from analysis.compare.sides import open_sides  # noqa: PLC0415
    from fscale.ab.guests import measure as measure_guests  # noqa: PLC0415
    from fscale.ab.plan import make  # noqa: PLC0415
    from fscale.ab.run import execute, preview  # noqa: PLC0415
    from fscale.ab.ways import refuse_unheeded, way_of  # noqa: PLC0415

    settings = settings_of(metric, margin, count_margin, fdr)
    outputs = outputs_of(as_json, junit, markdown, mail, html, ktap)
    sides = parse(base), parse(new)
    in_guests = any(side.of_guest for side in sides)
    way = way_of(in_guests=in_guests, slices=slices)
    refuse_unheeded(context, way)
    way.refuse_others(*sides)
    if in_guests:
        given = guest_arguments(
            workload=workload,
            cores=cores,
            media=media,
            mode=mode,
            duration=duration,
            settings=suite_keys,
        )
        if slices:
            measure_pairs(
                *sides,
                suite,
                given,
                options=options_for(cores),
                output=output,
                seed=1 if seed is None else seed,
                settings=settings,
                minutes=max_minutes,
                repetitions=repetitions or 0,
            )
        else:
            refuse_few_boots(repetitions or 0, settings)
            files, inside = handed_in(suite, None, *sides)
            measure_guests(
                *sides,
                [inside, *given],
                repetitions=repetitions or GUEST_REPETITIONS,
                seed=1 if seed is None else seed,
                output=output,
                files=files,
                options=options_for(cores),
            )
    else:
        request = request_of(
            suite,
            output,
            workload=workload,
            cores=cores,
            media=media,
            mode=mode,
            duration=duration,
            settings=suite_keys,
            seed=seed,
            device=device,
            yes_format=yes_format,
            directory=directory,
            binary=binary,
        )

        def plan() -> "Plan":
            made = make(request, *sides, settings, repetitions or 0, slices=slices)
            say_unheeded_duration(made, duration)
            return made

        if dry_run:
            preview(plan(), tell)
            return
        execute(plan, 60 * max_minutes, wait)
    measured = open_sides(output, None)
    comparison = compare(measured, settings)
    write(comparison, outputs, measured)
    if not outputs.to_terminal:
        show(comparison, everything)
    if comparison.regressed:
        raise typer.Exit(Exit.FAILED)
