# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts on latencies: a rare delay, A against A, and what recording costs.

    .venv/bin/python -m tests.validation.tails delay --output DIR
    .venv/bin/python -m tests.validation.tails alarms --output DIR
    .venv/bin/python -m tests.validation.tails cost --output DIR
    .venv/bin/python -m tests.validation.tails simulated

`delay` plants a delay in one operation in `--every` and prints the verdicts on the quantiles with
the one on throughput beside them. `alarms` cuts an A/A run into comparisons and exits with 1 if
more than one percent of them have an alarm. `cost` compares a side that records latencies with one
that does not, in slices. `simulated` judges made-up repetitions: lognormal latencies of which one
operation in `--every` is a hundred times as long, and a level that differs by 10% from repetition
to repetition.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from fscale.analysis.compare import wording
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.observations import Observations, Test
from fscale.analysis.compare.pairs import subject_of
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.metrics import LATENCIES, METRICS
from fscale.model.paths import BENCH
from tests.support.synthetic import key
from tests.validation.delay import BUILD, rare, script
from tests.validation.windows import run, tally

OPERATIONS = 20_000
DROP = """\
n=$#
while [ $n -gt 0 ]; do
	if [ "$1" = --latency ]; then
		shift 2
		n=$((n - 2))
	else
		set -- "$@" "$1"
		shift
		n=$((n - 1))
	fi
done
"""


def without_latency() -> Path:
    """The microbenchmark, which is not told to record latencies."""
    BUILD.mkdir(parents=True, exist_ok=True)
    return script(BENCH, "fscale-bench-no-latency", "", before=DROP)


def shown(output: Path, settings: Settings) -> None:
    """Print a line for each judgement."""
    for one in compare(open_sides(output, None), settings).judgements:
        how = wording.measured(one)
        print(f"{wording.judgement_line(one)}: {one.verdict} ({how}) {one.reason}", flush=True)


def delay(given: argparse.Namespace) -> int:
    """Plant a delay on side B, measure until the repetitions are done, and judge."""
    settings = Settings(metrics=("throughput", *LATENCIES[:3]))
    base, new = (
        f"{given.filesystem}:binary={rare(every, 1000 * given.micro)}" for every in (0, given.every)
    )
    began = time.monotonic()
    output = run(
        base,
        new,
        given.workloads.split(","),
        given.repetitions,
        given.duration,
        given.output,
        slices=None if given.slices else False,
        settings=settings,
        latency=True,
        options={"DRBL": {"block": given.block}},
    )
    print(f"one in {given.every} takes {given.micro} us longer; {time.monotonic() - began:.0f} s")
    shown(output, settings)
    return 0


def alarms(given: argparse.Namespace) -> int:
    """Count the comparisons of one A/A run that have an alarm."""
    settings = Settings(metrics=LATENCIES)
    workloads = given.workloads.split(",")
    each = -(-given.comparisons // len(workloads))
    fs = given.filesystem
    repetitions = each * given.repetitions
    output = run(
        fs, fs, workloads, repetitions, given.duration, given.output, settings=settings,
        latency=True,
    )  # fmt: skip
    comparisons = found = 0
    for (workload, metric), verdicts in sorted(tally(output, given.repetitions, settings).items()):
        print(f"{workload} {metric}: {dict(verdicts)}")
        if metric == "p99":
            comparisons += verdicts.total()
            found += verdicts["slower"] + verdicts["faster"]
    print(f"p99: {found} false alarms in {comparisons} comparisons: {found / comparisons:.2%}")
    return int(found > 0.01 * comparisons)


def cost(given: argparse.Namespace) -> int:
    """Compare a side without latencies with one that records them."""
    base, new = f"{given.filesystem}:binary={without_latency()}", given.filesystem
    output = run(
        base,
        new,
        given.workloads.split(","),
        given.repetitions,
        given.duration,
        given.output,
        slices=True,
        latency=True,
    )
    shown(output, Settings(metrics=METRICS))
    return 0


def _made_up(given: argparse.Namespace, share: float, rng: np.random.Generator) -> Test:
    """One comparison: side B has `share` more of the long operations, 0 for none more."""
    values: list[dict[int, float]] = []
    for more in (0.0, share):
        own = {}
        for repetition in range(1, given.repetitions + 1):
            times = rng.lognormal(np.log(1e-5) + rng.normal(0, 0.1), 0.3, OPERATIONS)
            long = rng.random(OPERATIONS) < 1 / given.every + more
            own[repetition] = float(np.quantile(np.where(long, 100 * times, times), 0.99))
        values.append(own)
    base, new = (Observations("simulated", side) for side in values)
    return Test(subject_of(key()), "p99", base, new, interleaved=True)


def simulated(given: argparse.Namespace) -> int:
    """Count alarms where nothing differs, and what is found where one in 50 more is long."""
    settings = Settings(metrics=("p99",))
    counts: dict[float, Counter[str]] = {}
    for share in (0.0, 1 / 50):
        rng = np.random.default_rng(1)
        tests = [_made_up(given, share, rng) for _ in range(given.comparisons)]
        counts[share] = Counter(judge([test], settings)[0].verdict for test in tests)
        print(f"{share:.0%} more long operations: {dict(counts[share])}", flush=True)
    alarms = counts[0.0]["slower"] + counts[0.0]["faster"]
    return int(alarms > 0.01 * given.comparisons)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    ways = parser.add_subparsers(required=True)
    for function, workloads, repetitions in (
        (delay, "DRBL", 10),
        (alarms, "DRBL,MWCL,DWSL", 8),
        (cost, "DRBL", 20),
        (simulated, "", 8),
    ):
        way = ways.add_parser(function.__name__)
        way.set_defaults(function=function)
        way.add_argument("--output", type=Path, required=function is not simulated)
        way.add_argument("--filesystem", default="ext4")
        way.add_argument("--workloads", default=workloads)
        way.add_argument("--repetitions", type=int, default=repetitions)
        way.add_argument("--duration", type=float, default=0.5)
        way.add_argument("--every", type=int, default=500)
        way.add_argument("--micro", type=int, default=1000)
        way.add_argument("--comparisons", type=int, default=100)
        way.add_argument("--block", type=int, default=4096, help="bytes that DRBL reads at once")
        way.add_argument("--slices", action="store_true")
    given = parser.parse_args()
    return int(given.function(given))


if __name__ == "__main__":
    sys.exit(main())
