# SPDX-License-Identifier: GPL-2.0-only
"""Compare workloads with bare loops around the same system calls, on tmpfs.

Pairs are interleaved, and every second pair runs the other way round. Two ratios (ours to bare)
are reported, each the ratio of medians with a bootstrap interval: of operations per wall second,
and of operations per CPU second of the process, which a busy neighbour disturbs less.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WORKLOADS = (
    *("DRBL", "MRPL", "DWOL", "creat_private", "create_unlink_private"),
    *("fcntl_lock_private", "fault_private"),
)
RESAMPLES = 2000


def ours(build: Path, workload: str, cpu: int, seconds: float, scratch: Path) -> tuple[float, ...]:
    """Operations per wall second and per CPU second of fscale-bench."""
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        argv = [build / "fscale-bench", "--workload", workload, "--dir", directory]
        argv += ["--cpus", str(cpu), "--duration", str(seconds), "--warmup", "0.1"]
        done = subprocess.run(list(map(str, argv)), check=True, stdout=subprocess.PIPE, text=True)
    out = json.loads(done.stdout)
    cpu_seconds = sum(w["user_seconds"] + w["system_seconds"] for w in out["workers"])
    return out["ops"] / out["seconds"], out["ops"] / cpu_seconds


def bare(build: Path, workload: str, cpu: int, seconds: float, scratch: Path) -> tuple[float, ...]:
    """Operations per wall second and per CPU second of the bare loop."""
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        argv = [build / "tests" / "bare", workload, directory, cpu, 0.1, seconds]
        done = subprocess.run(list(map(str, argv)), check=True, stdout=subprocess.PIPE, text=True)
    ops, wall, cpu_seconds = (float(field) for field in done.stdout.split())
    return ops / wall, ops / cpu_seconds


def ratio(pairs: list[tuple[float, float]], rng: random.Random) -> dict[str, Any]:
    """Ratio of medians of (ours, bare) pairs, its 95% bootstrap interval, and each pair's ratio."""

    def of_medians(sample: list[tuple[float, float]]) -> float:
        return statistics.median(a for a, _ in sample) / statistics.median(b for _, b in sample)

    resampled = sorted(of_medians(rng.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return {
        "ratio_of_medians": round(of_medians(pairs), 5),
        "interval_95": [round(resampled[int(RESAMPLES * q)], 5) for q in (0.025, 0.975)],
        "median_of_pair_ratios": round(statistics.median(a / b for a, b in pairs), 5),
        "pair_ratios": [round(a / b, 4) for a, b in pairs],
        "ours_median": round(statistics.median(a for a, _ in pairs), 1),
        "bare_median": round(statistics.median(b for _, b in pairs), 1),
    }


def compare(args: argparse.Namespace, workload: str, scratch: Path) -> dict[str, dict[str, Any]]:
    """Interleave the pairs of one workload; return its two ratios."""
    wall, cpu = [], []
    common = (args.build, workload, args.cpu, args.seconds, scratch)
    for pair in range(args.pairs):
        if pair % 2:
            b, a = bare(*common), ours(*common)
        else:
            a, b = ours(*common), bare(*common)
        wall.append((a[0], b[0]))
        cpu.append((a[1], b[1]))
    rng = random.Random(1)
    return {"per_wall_second": ratio(wall, rng), "per_cpu_second": ratio(cpu, rng)}


def main() -> int:
    """Print the ratios as JSON; exit 1 where one per CPU second is below --least."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="where fscale-bench is")
    parser.add_argument("--scratch", type=Path, default=Path("/dev/shm"), help="a tmpfs")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("--least", type=float, default=0.99)
    parser.add_argument("--workload", choices=WORKLOADS, action="append")
    args = parser.parse_args()
    args.build = args.build.resolve()
    results = {
        w: compare(args, w, args.scratch) for w in WORKLOADS if w in (args.workload or WORKLOADS)
    }
    print(
        json.dumps({"pairs": args.pairs, "seconds": args.seconds, "workloads": results}, indent=2)
    )
    worst = min(r["per_cpu_second"]["ratio_of_medians"] for r in results.values())
    return 0 if worst >= args.least else 1


if __name__ == "__main__":
    sys.exit(main())
