# SPDX-License-Identifier: GPL-2.0-only
"""Which cache lines do lanes still share, an operation, before and after a change of lanefs?

fscale gate --base lanefs:module=old.ko --new lanefs --cores 8 --output results/lanes
.venv/bin/python -m tests.validation.lanes results/lanes/boots/A results/lanes/boots/B

Prints, as Markdown, for each workload the lines that moved between cores, how many of them are
lanefs's (a member of one of its structs, or touched by one of its functions), and the objects
that moved at least LEAST times an operation. The VFS's own structs within
lanefs's inode count as the VFS's where no function of lanefs touches them.
"""

import argparse
import re
from collections import Counter, defaultdict
from pathlib import Path

from fscale.analysis.reader import load
from fscale.model.simulation import SHARED, HotLine

LEAST = 0.1
_OF_VFS = re.compile(r"lanefs_inode\.vfs_inode")


def place(line: HotLine) -> str:
    """The object without its address, which differs from boot to boot."""
    named = re.sub(r"^memory at 0x[0-9a-f]+(: )?", "", line.object)
    return re.sub(r" \(of .*?\)|, .*", "", named) or "memory without a name"


def objects(moved: Counter[str]) -> str:
    """Those that moved often, in Markdown."""
    return ", ".join(f"`{p}` {n:.2f}" for p, n in moved.most_common() if n >= LEAST) or "none"


def ours(line: HotLine) -> bool:
    """Whether lanefs has the object, or touches it."""
    if any(user.function.startswith("lanefs_") for user in line.users):
        return True
    return "lanefs" in line.object and not _OF_VFS.search(line.object)


def shared(directory: Path) -> dict[str, tuple[float, float, Counter[str]]]:
    """By workload: lines that moved an operation, lanefs's among them, and all by object."""
    moved: dict[str, Counter[str]] = defaultdict(Counter)
    own: Counter[str] = Counter()
    ops: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for cell in load(directory).cells:
        if cell.status != "ok" or cell.simulation is None:
            continue
        workload = cell.key.workload
        ops[workload] += cell.simulation.total("ops")
        total[workload] += sum(cell.simulation.transfers(kind) for kind in SHARED)
        for line in cell.simulation.lines:
            count = sum(line.transfers.get(kind, 0) for kind in SHARED)
            moved[workload][place(line)] += count
            own[workload] += count if ours(line) else 0
    return {
        name: (
            total[name] / ops[name],
            own[name] / ops[name],
            Counter({place: count / ops[name] for place, count in moved[name].items()}),
        )
        for name in ops
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    given = parser.parse_args()
    before, after = shared(given.before), shared(given.after)
    print("| workload | lines before | after | lanefs's before | after | objects before | after |")
    print("|---|--:|--:|--:|--:|---|---|")
    for name in sorted(before.keys() & after.keys()):
        counts = " | ".join(
            f"{value:.2f}"
            for value in (before[name][0], after[name][0], before[name][1], after[name][1])
        )
        print(f"| {name} | {counts} | {objects(before[name][2])} | {objects(after[name][2])} |")


if __name__ == "__main__":
    main()
