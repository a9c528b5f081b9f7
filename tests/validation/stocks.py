# SPDX-License-Identifier: GPL-2.0-only
"""What windows of 0.1 s miss: rates of a steady state from its beginning on, and those of stocks.

Each cell of a steady state is one long window after a sync, as each window of a stock begins after
one. So its first tenth of a second is what a stock that lasts for so long would show, and all of it
has the commits and the write-back. Beside it stands the same workload with its stock.
"""

import argparse
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from fscale.analysis.reader import load
from fscale.analysis.windows import windows_of
from fscale.model.paths import ROOT
from fscale.model.results import Cell

KEEP = {"DWAL": 1 << 20, "MWCL": 10000, "MWUL": 10000}


def measure(arguments: argparse.Namespace, kind: str) -> list[Cell]:
    """All cells of the steady states ("steady") or of stocks ("stock")."""
    keep = {name: units if kind == "steady" else 0 for name, units in KEEP.items()}
    options = ", ".join(f"{name} = {{ keep = {units} }}" for name, units in keep.items())
    duration = arguments.duration if kind == "steady" else min(3.0, arguments.duration)
    argv = [str(ROOT / "bin/fscale"), "run", "quick", "--workload", ",".join(KEEP)]
    argv += ["--fs", arguments.fs, "--cores", arguments.cores, "--seed", "1", "--wait", "600"]
    argv += ["--repetitions", str(arguments.repetitions), "--duration", f"{duration:g}"]
    for text in ("warmup=0", "interval=0.1", "setup_limit=600", "margin=600"):
        argv += ["--set", text]
    argv += ["--set", f"options = {{ {options} }}", "--output", str(arguments.output / kind)]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return load(arguments.output / kind).scored


def first(cell: Cell, seconds: float) -> float:
    """Operations per second in the first `seconds` of a cell."""
    assert cell.bench
    spent = ops = 0.0
    for length, count in zip(cell.bench.intervals.seconds, cell.bench.intervals.ops, strict=True):
        if spent >= 0.99 * seconds:
            break
        spent, ops = spent + length, ops + count
    return ops / spent


def row(steady: Sequence[Cell], stock: Sequence[Cell], lengths: Sequence[float]) -> str:
    """Rates of the first seconds by that of the whole, and of stocks with their windows."""
    whole = median(c.ops_per_second for c in steady)
    shares = [median(first(c, length) / c.ops_per_second for c in steady) for length in lengths]
    windows = [found.median for c in stock if (found := windows_of(c))]
    by_stock = f"{median(c.ops_per_second for c in stock):,.0f}" if stock else ""
    cells = [f"{whole:,.0f}", *(f"{share:.2f}" for share in shares), by_stock]
    return " | ".join([*cells, f"{median(windows):.2g}" if windows else "", str(len(steady))])


def main() -> int:
    """A row for each point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--fs", default="ext4")
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--duration", type=float, default=30, help="seconds of a steady state")
    parser.add_argument("--repetitions", type=int, default=1)
    arguments = parser.parse_args()
    kinds_of: dict[tuple[str, str, int], dict[str, list[Cell]]]
    kinds_of = defaultdict(lambda: defaultdict(list))
    for kind in ("steady", "stock"):
        for cell in measure(arguments, kind):
            kinds_of[cell.key.workload, cell.key.filesystem, cell.key.cores][kind].append(cell)
    lengths = [length for length in (0.1, 1, 5, 30) if length < arguments.duration]
    heads = [f"first {length:g} s" for length in lengths]
    head = ["workload", "fs", "cores", f"{arguments.duration:g} s, op/s", *heads]
    head += ["stock, op/s", "its windows, s", "n"]
    print(f"| {' | '.join(head)} |\n|{'--:|' * len(head)}")
    for (workload, filesystem, cores), kinds in sorted(kinds_of.items()):
        if kinds["steady"]:
            text = row(kinds["steady"], kinds["stock"], lengths)
            print(f"| {workload} | {filesystem} | {cores} | {text} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
