# SPDX-License-Identifier: GPL-2.0-only
"""Makes run.json, whatever measures: of a call that begins, that goes on, or of two sides."""

import hashlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from fscale import __version__
from fscale.model.errors import FscaleError
from fscale.model.facts import list_changes
from fscale.model.results import Machine, Run, all_boots
from fscale.model.revision import revision

State = Literal["complete", "interrupted"]
"""of a run that is over"""
SKIPPED = " is skipped: "
"""in a warning: what the machine lacked, and may have when the run goes on"""


BUILD, BUILD_ID = "kernel build", "kernel build id"
"""among the versions of a comparison, where the kernel of B is another one"""


def now() -> str:
    """UTC, ISO 8601, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def fingerprint(path: Path) -> str:
    """Of a file, as the versions of a run name it."""
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
    """The run of this call, to be stored in `output`."""
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


def resume(old: Run, run: Run, output: Path) -> None:
    """Resume with `run` the run `old` that is in `output`: take over what it has recorded.

    FscaleError where the two differ in more than time, with what differs.
    """
    if changed := list_changes(old, run):
        raise FscaleError(
            f"{output} contains a run that cannot be resumed: {'; '.join(changed)}. Use "
            "another --output, or repeat the command that began it, with the same kernel, tools "
            "and revision of fscale"
        )
    # A side of a comparison may have been resumed itself: the last command is this call's.
    run.started, run.command = old.started, [*old.command, *run.command[-1:]]
    run.machine.boots = all_boots([old.machine, run.machine])
    kept = [warning for warning in old.warnings if SKIPPED not in warning]
    run.warnings = list(dict.fromkeys(kept + run.warnings))


def merge_sides(
    output: Path,
    sides: Mapping[str, Run],
    texts: Mapping[str, str],
    *,
    repetitions: int,
    planned_cells: int,
) -> Run:
    """The run of a comparison of sides "A" and "B", of whose runs it takes all that they share.

    `texts`: the sides as they were asked for. `repetitions`: of a side, or 0 until it is decided.
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
    """What side A has, and then what B has besides."""
    return a | {name: value for name, value in b.items() if name not in a}
