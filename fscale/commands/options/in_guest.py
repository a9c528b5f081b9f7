# SPDX-License-Identifier: GPL-2.0-only
"""What is measured in guests, checked on this machine before one boots."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from fscale.analysis.compare.settings import Settings
from fscale.commands.options.measure import MeasureOptions, PairedOptions
from fscale.commands.options.on import engine_of
from fscale.model import catalogue, paths
from fscale.model.catalogue import is_path
from fscale.model.config import Suite
from fscale.model.errors import FscaleError
from fscale.model.variant import Variant, parse
from fscale.runner.selection import check
from fscale.vm import files
from fscale.vm.request import GuestRequest
from fscale.vm.steps import Steps

if TYPE_CHECKING:
    from fscale.ab.guests import Guests


@dataclass(frozen=True)
class GuestRun:
    """`fscale run` in a guest: the suite that it measures, its arguments, and their files."""

    suite: Suite
    arguments: list[str]
    """the suite first"""
    files: files.Files


def run_in_guest(measured: MeasureOptions, suite: Path, filesystems: Sequence[Path]) -> GuestRun:
    """Return the `fscale run` that measures a suite in a guest.

    `filesystems` are TOML files that the guest gets.

    Raises:
        FscaleError: a name, a key or an option of a workload is not valid.
    """
    checked = _check(measured, suite, filesystems)
    passed, suite_name = files.pass_configuration(suite, filesystems)
    if measured.workload is not None:
        loads, workload = files.pass_loads(measured.workload)
        passed, measured = passed | loads, replace(measured, workload=workload)
    return GuestRun(checked, [suite_name, *measured.arguments], passed)


def _check(measured: MeasureOptions, suite: Path, filesystems: Sequence[Path]) -> Suite:
    request = replace(measured.request(suite, Path("/results")), binary=paths.BENCH)
    checked = check(request, {path.stem for path in filesystems})
    for name in checked.filesystems:
        if path := parse(name).own_file:
            raise FscaleError(
                f"{path}: a guest does not have this file; give --filesystem {path}, and name the "
                f"file system {path.stem}"
            )
    for name in filter(is_path, checked.media):
        raise FscaleError(f"{name}: a guest has the shipped media only (`fscale list media`)")
    return checked


@contextlib.contextmanager
def comparison_in_guests(
    base: Variant,
    new: Variant,
    measured: PairedOptions,
    *,
    slices: bool,
    options: GuestRequest,
    output: Path,
    seed: int,
    settings: Settings,
    repetitions: int = 0,
    filesystems: Sequence[Path] = (),
    bisecting: bool = False,
    on: str | None = None,
) -> Iterator["Guests"]:
    """Prepare the comparison of two guests.

    `filesystems` are TOML files of the user; `on` is an engine whose machines boot guests that
    count instructions.

    Raises:
        FscaleError: a side or an option is not valid.
    """
    from fscale.ab.guest_plan import make  # noqa: PLC0415 - imports the statistics

    if measured.fs is not None and (named := [side.text for side in (base, new) if side.name]):
        raise FscaleError(
            f"--fs: {named[0]} names its file system; leave --fs out, or give kernel:KERNEL"
        )
    of_sides = [side.own_file for side in (base, new) if side.own_file]
    for side in (base, new):
        if side.own_file:
            catalogue.load_filesystem(side.filesystem)  # reports errors before a boot
    run = run_in_guest(
        measured.recording(settings.metrics),
        measured.suite,
        list(dict.fromkeys([*filesystems, *of_sides])),
    )
    with engine_of(on) as engine:
        yield make(
            base,
            new,
            run.arguments,
            suite=run.suite,
            slices=slices,
            files=run.files,
            options=options,
            output=output,
            seed=seed,
            settings=settings,
            repetitions=repetitions,
            steps=Steps(Console(stderr=True)),
            bisecting=bisecting,
            engine=engine,
        )
