# SPDX-License-Identifier: GPL-2.0-only
"""Refuses a comparison of two sides whose different texts describe the same file system."""

import re

from fscale.ab.plan import Plan
from fscale.model import mkfs, mount
from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from fscale.model.store import BENCH
from fscale.runner.session import Session

# Keys of a description that differ each time a file system is made.
_OWN = re.compile(r"uuid|fsid| time$|created|checked|seed|checksum|^csum$", re.IGNORECASE)


def refuse_identical(plan: Plan, session: Session) -> None:
    """Make and mount each side once; FscaleError if both give the same file system.

    Equal texts are allowed, to compare a side with itself. Options whose effect cannot be observed
    count as a difference.
    """
    if plan.run.suite["base"] == plan.run.suite["new"] or f"{BENCH} of B" in plan.run.versions:
        return
    point = plan.points[0]
    keys = {side: point.key(side, 1) for side in "AB"}
    made = {side: plan.setups[side].filesystems[key.filesystem] for side, key in keys.items()}
    a, b = made["A"], made["B"]
    if a and b and _differ(a, b):
        return
    cells: list[Cell] = []
    described = []
    for side, key in keys.items():
        session.setup = plan.setups[side]
        session.described = {}
        if (cell := session.look(key)) is None:
            return
        cells.append(cell)
        described.append({k: v for k, v in session.described.items() if not _OWN.search(k)})
    if described[0] != described[1] or (a and b and a.mkfs != b.mkfs and not described[0]):
        return
    shown = [cell.mount.options for cell in cells if cell.mount]
    if len(shown) < len(cells) or shown[0] != shown[1]:
        return
    if a and b and _unseen(a, shown[0]) != _unseen(b, shown[1]):
        return
    raise FscaleError(
        f"{plan.run.suite['base']} and {plan.run.suite['new']} describe the same file system: mkfs "
        f"made the same, the kernel shows the same {len(shown[0])} mount options in effect, and "
        "the microbenchmark is the same; give a side that differs, or the same text twice to "
        "measure the noise"
    )


def _differ(a: FileSystem, b: FileSystem) -> bool:
    """Whether two file systems differ in properties that are known before they are made."""
    alike = (a.kernel, a.size, a.max_size, a.numa, a.partitions, a.settings, a.aged)
    if alike != (b.kernel, b.size, b.max_size, b.numa, b.partitions, b.settings, b.aged):
        return True
    return mkfs.options_differ(a.mkfs, b.mkfs)


def _unseen(fs: FileSystem, shown: list[str]) -> set[str]:
    return mount.not_shown(fs.mount_options, shown)
