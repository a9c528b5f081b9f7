# SPDX-License-Identifier: GPL-2.0-only
"""Stores a boot whose kernel did not come up, or not stay up: its cells are errors.

A text beside the directory of the boot, `.log`, has what is known.
"""

from pathlib import Path

from fscale.model.fault import Fault
from fscale.model.results import CellKey
from fscale.model.store import Store
from fscale.model.variant import Variant
from fscale.runner.session import new_cell
from fscale.runner.tasks import PlannedRun
from fscale.vm import console

MOST_LINE = 300


def log_of(boot: Path) -> Path:
    """The text about the boot that is stored there, which only a broken one has."""
    return boot.with_name(f"{boot.name}.log")


def is_one(boot: Path) -> bool:
    """Whether the boot that is stored there was broken."""
    return log_of(boot).exists()


def save_evidence(boot: Path, reason: str, evidence: str) -> str:
    """Store why a boot is broken, and what console and pstore say; return a line of it."""
    log = log_of(boot)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"{reason}\n{evidence}\n")
    told, last = console.judge(evidence).summary, evidence.strip().rpartition("\n")[2]
    if last and not told:
        told = f"no crash is printed, and the last line is: {last}"
    return "; ".join(
        [reason, *([told[:MOST_LINE]] if told else []), f"see {log.parent.name}/{log.name}"]
    )


def save_crashed(planned: PlannedRun, reason: str) -> None:
    """Store that a kernel crashed in the first cell without a result."""
    crashed, *others = planned.todo
    _save(planned.store, crashed, reason, "filesystem")
    for key in others:
        _save(planned.store, key, f"not measured, because of a crash in {crashed.id}", "machine")
    planned.run.state = "complete"
    planned.store.save_run(planned.run)


def save_down(boot: Path, like: Store, side: Variant, release: str, reason: str) -> None:
    """Store a boot in which nothing was measured. `like`: one that measured the same cells."""
    store, run = Store(boot), like.load_run()
    assert run
    named = {"filesystem": side.filesystem} if side.name else {}
    for cell in like.cells():
        _save(store, cell.key.model_copy(update=named), reason, "filesystem")
    run.machine = run.machine.model_copy(update={"kernel": release, "build": None, "boots": []})
    run.versions |= {"kernel": release}
    store.save_run(run)


def _save(store: Store, key: CellKey, reason: str, fault: Fault) -> None:
    cell = new_cell(key)
    cell.reason, cell.fault = reason, fault
    store.save_cell(cell)
