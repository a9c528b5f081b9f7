# SPDX-License-Identifier: GPL-2.0-only
"""Options of real file systems that change their speed: what `fscale ab` says of each.

.venv/bin/python -m tests.validation.planted --output results/validation/planted
"""

import argparse
from pathlib import Path

from fscale.analysis.compare import wording
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from tests.validation.windows import run

PLANTED = [
    ("ext4", "ext4:mount=data=journal", ["DWAL", "DWOL", "DWSL"]),
    ("ext4", "ext4:mount=nodelalloc", ["DWAL", "MWCL"]),
    ("ext4", "ext4:mount=commit=1", ["DWAL", "MWCL"]),
    ("ext4", "ext4:mount=dioread_lock", ["DRBL", "DWOL"]),
    ("btrfs:mount=nodatasum", "btrfs", ["DWOL", "DWAL"]),
    ("btrfs", "btrfs:mount=compress-force=zstd", ["DWAL", "DWOL"]),
    ("xfs", "xfs:mount=wsync", ["MWCL", "MWRL"]),
]


def main() -> None:
    """Measure each pair and print all judgements of points."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--duration", type=float, default=1.0)
    given = parser.parse_args()
    for number, (base, new, workloads) in enumerate(PLANTED):
        output = given.output / f"{number}"
        run(base, new, workloads, given.repetitions, given.duration, output)
        for j in compare(open_sides(output, None), Settings()).judgements:
            print(
                f"{base} -> {new}: {j.subject.workload} {j.metric}: {j.verdict} "
                f"{wording.change(j.ratio)} {wording.interval(j)} {wording.remark(j)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
