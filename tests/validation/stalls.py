# SPDX-License-Identifier: GPL-2.0-only
"""Whether `fscale ab` in slices calls rare stalls "same": planted ones that cost 9% of the time.

    .venv/bin/python -m tests.validation.stalls --output results/validation/stalls --tries 20
    .venv/bin/python -m tests.validation.stalls --simulate --workers 1,2,16 --tries 20

One operation of DRBL on tmpfs in so many takes a pause longer (delay.py), so that a pause comes
after about ten times its length of work; 0 is no pause. Each try is an `ab` of its own, with all
numbers of workers as its points. With `--simulate` nothing is measured: turns of simulated workers
are judged (tests.support.pauses.py).
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fscale.model.paths import ROOT
from tests.support.pauses import LONGER, judged
from tests.validation.delay import rare

EVERY = 20_000
"""operations in ten milliseconds of work, about; times the pause in milliseconds"""
ONLY = ("DRBL", "control_user", "control_syscall")
FOUND = (0, 1)
"""exit codes of `ab`: nothing found, a regression found"""


def live(pause: int, workers: str, minutes: float, output: Path) -> Iterator[tuple[int, str]]:
    """The number of workers and the verdict of each point of one `ab`."""
    base, new = (f"tmpfs:binary={rare(EVERY * ms, ms * 10**6, *ONLY)}" for ms in (0, pause))
    argv = [str(ROOT / "bin/fscale"), "ab", "--slices", "--base", base, "--new", new]
    argv += ["--workload", "DRBL", "--cores", workers, "--metric", "throughput", "--json"]
    argv += ["--max-minutes", str(minutes), "--wait", "600", "--output", str(output)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in FOUND:
        sys.exit(f"{' '.join(argv)}: exit code {done.returncode}\n{done.stderr}")
    for judgement in json.loads(done.stdout)["judgements"]:
        cores = judgement["subject"]["cores"]
        if len(cores) == 1:  # not the curve
            yield cores[0], judgement["verdict"]


def main() -> int:
    """Print the verdicts as they come and their counts; 1 if a stall is called the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pauses", default="20,5,30,100,300", help="milliseconds")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=3.0, help="of one `ab`")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--output", type=Path)
    where.add_argument("--simulate", action="store_true")
    given = parser.parse_args()
    counts: dict[tuple[int, int], Counter[str]] = {}
    for number in range(given.tries):
        for pause in map(int, given.pauses.split(",")):
            begun = time.monotonic()
            if given.simulate:
                each = map(int, given.workers.split(","))
                found = [(n, judged(number, n, pause / 1000, LONGER).verdict) for n in each]
            else:
                output = given.output / f"{pause}-{number}"
                found = list(live(pause, given.workers, given.minutes, output))
            took = round(time.monotonic() - begun, 1)
            for workers, verdict in found:
                counts.setdefault((pause, workers), Counter())[verdict] += 1
            print(json.dumps({"pause": pause, "seconds": took, **dict(found)}), flush=True)
    for (pause, workers), verdicts in sorted(counts.items()):
        print(json.dumps({"pause": pause, "workers": workers, **verdicts}))
    return int(any(pause and verdicts["same"] for (pause, _), verdicts in counts.items()))


if __name__ == "__main__":
    sys.exit(main())
