# SPDX-License-Identifier: GPL-2.0-only
"""Checks on this machine what `fscale run` is to measure in a guest, before one boots."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import typer

from fscale.commands.options.requested import RequestOptions
from fscale.model import paths
from fscale.model.bundle import bundle
from fscale.model.catalogue import is_path
from fscale.model.config import Suite
from fscale.model.errors import FscaleError
from fscale.model.variant import parse
from fscale.runner.prepare import check


def suite_in_guest(suite: Path, arguments: Sequence[str], own: Iterable[Path]) -> Suite:
    """Return the suite that `fscale run SUITE ARGUMENT...` measures in a guest.

    `own` are the TOML files of file systems that the guest gets.

    Raises:
        UsageError: of typer: `fscale run` has no such option, or the option no such value.
        FscaleError: a name, a key or an option of a workload is not valid.
    """
    parsed: list[RequestOptions] = []

    @bundle("asked", RequestOptions, "on")
    def take(
        *,
        junit: str | None = None,  # of CellOutputs, which would look for these files here
        ktap: str | None = None,
        asked: RequestOptions,
    ) -> None:
        parsed.append(asked)

    run = typer.Typer(add_completion=False)
    run.command()(take)
    typer.main.get_command(run).main(list(arguments), prog_name="fscale run", standalone_mode=False)
    request = parsed[0].request(suite, Path("/results"))
    found = check(replace(request, binary=paths.BENCH), {path.stem for path in own})
    for name in found.filesystems:
        if path := parse(name).own_file:
            raise FscaleError(
                f"{path}: a guest does not have this file; give --filesystem {path}, and name the "
                f"file system {path.stem}"
            )
    for name in filter(is_path, found.media):
        raise FscaleError(f"{name}: a guest has the shipped media only (`fscale list media`)")
    return found
