# SPDX-License-Identifier: GPL-2.0-only
"""A against A: how many of many comparisons raise an alarm. Exits 1 above one percent.

.venv/bin/python -m tests.validation.false_alarms --output results/validation/aa
"""

import argparse
import sys
from pathlib import Path

from tests.validation.windows import run, tally

WORKLOADS = ["DRBL", "DWOL", "MRPL", "MWCL", "MWRL"]


def main() -> int:
    """Measure and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--filesystems", default="tmpfs,ext4")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--duration", type=float, default=0.2)
    given = parser.parse_args()
    filesystems, workloads = given.filesystems.split(","), given.workloads.split(",")
    points = len(filesystems) * len(workloads)
    each = -(-given.comparisons // points)
    comparisons = alarms = 0
    for fs in filesystems:
        output = run(fs, fs, workloads, each * given.repetitions, given.duration, given.output / fs)
        for (workload, metric), verdicts in sorted(tally(output, given.repetitions).items()):
            print(f"{fs} {workload} {metric}: {dict(verdicts)}")
            if metric == "any":
                comparisons += verdicts.total()
                alarms += verdicts["slower"] + verdicts["faster"]
    print(f"{alarms} false alarms in {comparisons} comparisons: {alarms / comparisons:.2%}")
    return int(alarms > 0.01 * comparisons)


if __name__ == "__main__":
    sys.exit(main())
