# SPDX-License-Identifier: GPL-2.0-only
"""A delay planted in a module's hot path, in guests: the verdicts, and how long they take.

    .venv/bin/python -m tests.validation.modules --output results/validation/modules

Each begin of an operation that changes lanefs turns a loop 450 times (plants/delay.patch). What
share of an operation that is, the counted instructions say; the last line is seconds. `--plant
none` compares the module with itself.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from tests.validation.gate import fscale, module


def main() -> int:
    """Build both modules, compare them in slices and print a line for each judgement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--plant", choices=("delay", "none"), default="delay")
    parser.add_argument("--workloads", default="MWCL,MWUL")
    parser.add_argument("--cores", default="1")
    parser.add_argument("--kernel", default="bookworm")
    given = parser.parse_args()
    planted = None if given.plant == "none" else given.plant
    old, new = (module(name, given.kernel) for name in (None, planted))
    began = time.monotonic()
    measured = fscale(
        *("ab", "--slices", "--output", given.output),
        *("--base", f"lanefs:kernel={given.kernel}:module={old}"),
        *("--new", f"lanefs:kernel={given.kernel}:module={new}"),
        *("--smp", max(given.cores.split(","), key=int), "--memory", "2G"),
        *("--workload", given.workloads, "--cores", given.cores),
    )
    seconds = time.monotonic() - began
    judged = fscale("compare", given.output, "--json")
    for one in json.loads(judged.stdout)["judgements"]:
        kept = ("metric", "verdict", "ratio", "low", "high", "pairs")
        print(json.dumps({"workload": one["subject"]["workload"], **{k: one[k] for k in kept}}))
    print(f"exit code {measured.returncode} after {seconds:.0f} s")
    return int(measured.returncode != (0 if planted is None else 1))


if __name__ == "__main__":
    sys.exit(main())
