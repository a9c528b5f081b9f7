# SPDX-License-Identifier: GPL-2.0-only
"""Makes run.json: for a new run, a resumed run, or a comparison of two sides; keeps its state."""

import contextlib
import hashlib
import shlex
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from fscale import __version__
from fscale.model.errors import FscaleError, Interrupted
from fscale.model.facts import list_changes
from fscale.model.results import Machine, Run, all_boots
from fscale.model.revision import revision
from fscale.model.store import Store

State = Literal["complete", "interrupted"]
"""the state of a run that has ended"""
SKIPPED = " is skipped: "
"""Part of a warning about what the machine lacks. Resuming a run drops such warnings, because the
machine may have it by then."""
RESTORED = "the machine's state is restored and "

BUILD, BUILD_ID = "kernel build", "kernel build id"
"""keys among the versions of a comparison whose side B has another kernel"""

MOST_SHOWN = 3  # changes in the refusal to resume
MOST_COLUMNS = 160  # of one of them

_BOOTED = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
"""when the machine booted, by the clock as this process started"""


def now() -> str:
    """Return the time in UTC, ISO 8601, in whole seconds.

    The times of one process are in order, also if the clock is set meanwhile.
    """
    seconds = _BOOTED + time.clock_gettime(time.CLOCK_BOOTTIME)
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def fingerprint(path: Path) -> str:
    """Return a digest of a file, as recorded among the versions of a run."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


def begin(
    output: Path,
    *,
    seed: int,
    suite: dict[str, Any],
    filesystems: dict[str, dict[str, Any]],
    media: dict[str, dict[str, Any]],
    machine: Machine,
    versions: dict[str, str],
    workloads: list[dict[str, Any]],
    planned_cells: int,
    warnings: Sequence[str],
) -> Run:
    """Make the record of a new run, to be stored in `output`."""
    return Run(
        id=output.resolve().name,
        started=now(),
        state="running",
        fscale_version=__version__,
        revision=revision(),
        command=[shlex.join(sys.argv)],
        seed=seed,
        suite=suite,
        filesystems=filesystems,
        media=media,
        machine=machine,
        versions=versions,
        workloads=workloads,
        planned_cells=planned_cells,
        warnings=list(warnings),
    )


def claim(run: Run, output: Path) -> Run:
    """Make the record of a run that another machine planned for this call, to be stored here."""
    own = {"id": output.resolve().name, "started": now(), "command": [shlex.join(sys.argv)]}
    return run.model_copy(update=own)


def resume(old: Run, run: Run, output: Path) -> None:
    """Make `run` the continuation of the run `old` in `output`, taking over its records.

    Raises:
        FscaleError: the two differ in facts that figures depend on; the text lists some.
    """
    if changed := list_changes(old, run):
        raise FscaleError(
            f"{output} contains a run that cannot be resumed, because these differ:\n"
            f"{_lines(changed)}Use another --output, or repeat the command that began it, with the "
            "same kernel, tools and revision of fscale"
        )
    # A side of a comparison may itself have been resumed; only its last command is this call.
    run.started, run.command = old.started, [*old.command, *run.command[-1:]]
    run.machine.boots = all_boots([old.machine, run.machine])
    kept = [warning for warning in old.warnings if SKIPPED not in warning]
    run.warnings = list(dict.fromkeys(kept + run.warnings))


def _lines(changed: Sequence[str]) -> str:
    """A line for each of a few changes: of those that a user typed, if any, as others follow."""
    typed = [t.removeprefix("suite.") for t in changed if t.startswith(("suite.", "seed:"))]
    told = typed or changed
    lines = [textwrap.shorten(text, MOST_COLUMNS, placeholder=" ...") for text in told[:MOST_SHOWN]]
    if len(told) > MOST_SHOWN:
        lines.append(f"and {len(told) - MOST_SHOWN} more")
    return "".join(f"    {line}\n" for line in lines)


@contextlib.contextmanager
def recorded(run: Run, store: Store, restored: str = "") -> Iterator[None]:
    """Keep the state of a run in run.json while the `with` block measures its cells.

    `restored`: what is to be said besides the finished cells if the user stops the run.

    Raises:
        Interrupted: the user stopped it; the text says how to resume the run.
    """
    store.save_run(run)
    run.state = "failed"  # unless replaced below
    try:
        yield
        run.state = "complete"
    except Interrupted as error:
        run.state = "interrupted"
        raise Interrupted(
            f"{error}; {restored}finished cells are kept in {store.directory}; the same command "
            "resumes the run"
        ) from None
    finally:
        run.finished = now()
        store.save_run(run)


def merge_sides(
    output: Path,
    sides: Mapping[str, Run],
    texts: Mapping[str, str],
    *,
    repetitions: int,
    planned_cells: int,
) -> Run:
    """Merge the runs of the sides "A" and "B" into the run of their comparison.

    `texts` are the sides as the user wrote them; `repetitions` is the number per side, or 0 if
    early stopping decides it.
    """
    a, b = sides["A"], sides["B"]
    run = a.model_copy(deep=True)
    run.id = output.resolve().name
    run.filesystems = _both(a.filesystems, b.filesystems)
    run.media = _both(a.media, b.media)
    run.versions |= {
        f"{what} of B": version
        for what, version in b.versions.items()
        if a.versions.get(what) != version
    }
    if b.machine.build and b.machine.build != a.machine.build:
        run.versions[f"{BUILD} of B"] = b.machine.build.version
        run.versions[f"{BUILD_ID} of B"] = b.machine.build.id or "unknown"
    known = {workload["id"] for workload in a.workloads}
    run.workloads += [workload for workload in b.workloads if workload["id"] not in known]
    run.suite |= {
        "base": texts["A"],
        "new": texts["B"],
        "repetitions": repetitions,
        "filesystems": list(run.filesystems),
    }
    run.planned_cells = planned_cells
    run.warnings = list(dict.fromkeys(a.warnings + b.warnings))
    return run


def _both(a: dict[str, dict[str, Any]], b: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Join two dictionaries; for keys in both, keep the value of side A."""
    return a | {name: value for name, value in b.items() if name not in a}
