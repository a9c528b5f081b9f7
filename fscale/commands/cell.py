# SPDX-License-Identifier: GPL-2.0-only
"""`fscale cell`: measures the cells of a task; engines run it on their machines."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from fscale.apps.adapter import loads
from fscale.commands.options.shared import ResultsOption
from fscale.commute.run_task import find_conflicts
from fscale.farm.objects import Cache
from fscale.farm.task import Kind, Task, identity
from fscale.model.catalogue import explain
from fscale.model.errors import FscaleError
from fscale.model.files import Folder
from fscale.runner import machine_task, run_task
from fscale.runner.signals import Signals
from fscale.sim.run_task import simulate
from fscale.vm.run_task import boot


def _compare(task: Task, directory: Path, output: Path) -> None:
    from fscale.ab.run_task import compare  # noqa: PLC0415 - imports the statistics

    compare(task, directory, output, loads)


# Measures the unfinished cells of a task into a results directory. The task's input files lie in
# the directory by their roles.
KINDS: dict[Kind, Callable[[Task, Path, Path], None]] = {
    "simulate": simulate,
    "commute": find_conflicts,
    "guest": boot,
    "run": lambda task, directory, output: run_task.measure(task, directory, output, loads),
    "ab": _compare,
    "doctor": lambda _task, _directory, output: machine_task.examine_here(output, loads()),
    "restore": lambda task, _directory, output: machine_task.restore_here(task, output),
}

_EPILOG = """
More examples:

    fscale cell task.json --output cells --objects /srv/fscale/objects
"""


def _cell(
    task: Annotated[Path, typer.Argument(help="Task to run: a JSON file that an engine wrote.")],
    output: ResultsOption,
    objects: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory with the task's input files, each named by its SHA-256. Default: "
            "~/.cache/fscale/objects.",
        ),
    ] = None,
) -> None:
    """Measure the cells of a task that `--on` handed to this machine.

    Example: fscale cell task.json --output cells

    Each cell is written when it ends; cells that are already in the results directory are not
    measured again. A task of another revision of fscale is refused.

    Exit codes: 0: every cell has a result, possibly an error of its load. 1: guests ended early
    repeatedly. 2: wrong usage, or this machine may not run the task. 3: interrupted; the same
    command resumes.
    """
    asked = read(task)
    if asked.identity != identity():
        raise FscaleError(
            f"{task} was made by fscale {asked.identity}, but this is {identity()}; install the "
            "same revision here"
        )
    run = KINDS.get(asked.kind)
    if run is None:
        raise FscaleError(f"{task} is of kind {asked.kind}, which this fscale cannot run")
    cache = Cache(objects)
    if missing := cache.missing(asked.files.values()):
        raise FscaleError(f"{cache.directory} lacks {', '.join(missing)}, which {task} needs")
    with Signals().installed(), tempfile.TemporaryDirectory(prefix="fscale-task-") as named:
        for role, digest in asked.files.items():
            link = Path(named, role)
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(cache.path(digest).resolve())
        run(asked, Path(named), output)


def read(path: Path) -> Task:
    """Read a task. Raises FscaleError if it is not one."""
    try:
        return Task.model_validate_json(Folder(path.parent).read(path.name))
    except ValidationError as error:
        raise FscaleError(f"{path} is not a task: {explain(error)}") from None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("cell", epilog=_EPILOG)(_cell)
