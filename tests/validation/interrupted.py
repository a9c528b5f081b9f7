# SPDX-License-Identifier: GPL-2.0-only
"""Interrupts a comparison in each of its ways, by Ctrl-C and by kill -9: is the verdict the same?

.venv/bin/python -m tests.validation.interrupted --output results/validation/interrupted

Each way measures ext4 against ext4 with data=journal, or against itself, once in one go and once
stopped twice and resumed by the same command. What is measured differs from call to call by
noise; so sides are compared that differ by far more, or not at all. Exits 1 where a verdict, an
exit code or what is left on the machine differs.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fscale.model.errors import Exit
from fscale.model.paths import ROOT
from tests.support.runner import state

FSCALE = str(ROOT / "bin" / "fscale")
_HERE = ["ab", "--workload", "DWAL", "--cores", "1", "--metric", "throughput"]
_GUESTS = [
    *("ab", "--base", "ext4:kernel=6.1", "--new", "ext4:mount=data=journal:kernel=6.1"),
    *("--workload", "DWAL", "--cores", "1", "--max-minutes", "60"),
]
_SIDES = ["--base", "ext4", "--new", "ext4:mount=data=journal"]
WAYS: dict[str, tuple[list[str], tuple[float, float]]] = {
    "whole": ([*_HERE, *_SIDES, "--whole", "--repetitions", "8", "--duration", "0.5"], (6, 6)),
    "slices": ([*_HERE, *_SIDES, "--slices", "--repetitions", "6"], (5, 5)),
    "guests in turn": ([*_GUESTS, "--repetitions", "6", "--duration", "0.3"], (45, 60)),
    "guests in slices": ([*_GUESTS, "--slices", "--repetitions", "4"], (60, 90)),
    "simulated": (["gate", *_SIDES, "--workload", "DWAL", "--cores", "4"], (20, 45)),
}
"""the command, and after how many seconds it is interrupted and killed"""


def verdicts(text: str) -> dict[str, str]:
    """Of a comparison's JSON: metric -> verdict."""
    return {one["metric"]: one["verdict"] for one in json.loads(text)["judgements"]}


def whole(argv: Sequence[str], output: Path) -> tuple[int, dict[str, str]]:
    """The exit code and the verdicts of a comparison that is left alone, or resumed."""
    done = subprocess.run(
        [FSCALE, *argv, "--output", str(output), "--json"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in (Exit.GOOD, Exit.FAILED):
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}")
    return done.returncode, verdicts(done.stdout)


def stopped(argv: Sequence[str], output: Path, number: signal.Signals, seconds: float) -> int:
    """Start a comparison and send it a signal after so many seconds; how it ended."""
    with (output.parent / "interrupted.log").open("a") as log:
        argv = [FSCALE, *argv, "--output", str(output)]
        child = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(number)
            return child.wait(120)


def main() -> int:
    """Each way, in one go and in three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--ways", default=",".join(WAYS))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for way in given.ways.split(","):
        argv, (first, second) = WAYS[way]
        before, began = state(), time.monotonic()
        place = given.output / way.replace(" ", "-")
        left_alone = whole(argv, place.with_suffix(".whole"))
        ends = [
            stopped(argv, place.with_suffix(".cut"), signal.SIGINT, first),
            stopped(argv, place.with_suffix(".cut"), signal.SIGKILL, second),
        ]
        resumed = whole(argv, place.with_suffix(".cut"))
        good = left_alone == resumed and ends == [Exit.INTERRUPTED, -signal.SIGKILL]
        good &= state() == before
        wrong += not good
        print(
            f"{way}: {'as in one go' if good else 'OTHERWISE'}; in one go {left_alone}, "
            f"interrupted {ends}, then {resumed}; {time.monotonic() - began:.0f} s",
            flush=True,
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
