# SPDX-License-Identifier: GPL-2.0-only
"""How long operations fit into turns, and what that does to a comparison of two sides.

Workers whose reads sleep for a fixed time take turns; each read is written down from when to when.
A ratio of rates comes from those (the true one), from the operations that ended between the edges
of the turns (counted from outside), and from the answers of the microbenchmark. Workers sleep
nearly always, so there may be more of them than CPUs.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fscale.model.paths import BENCH

_SHIM = """\
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	static int log = -1;
	static uint64_t due;
	uint64_t entry[3] = { (uint64_t)getpid(), now() };
	uint64_t length = (uint64_t)atol(getenv("READS_US")) * 1000;
	struct timespec until;
	char name[16];

	if (prctl(PR_GET_NAME, name) || strcmp(name, "fscale-run"))
		return syscall(SYS_pread64, fd, buf, size, offset);
	if (log < 0)
		log = open(getenv("READS_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0644);
	/* What woke late does not put off those after it, but by more than a read. */
	due = entry[1] > due + length ? entry[1] + length : due + length;
	until = (struct timespec){ (time_t)(due / 1000000000u), (long)(due % 1000000000u) };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	entry[2] = now();
	return write(log, entry, sizeof(entry)) < 0 ? -1 : (ssize_t)size;
}

/* More CPUs than there are. */
FILE *fopen(const char *path, const char *mode)
{
	int fd = open(strcmp(path, "/sys/devices/system/cpu/online") ? path : getenv("READS_CPUS"),
			*mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0644);

	return fd < 0 ? NULL : fdopen(fd, mode);
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	(void)pid, (void)size, (void)set;
	return 0;
}
"""


@dataclass(frozen=True)
class Rates:
    """Operations per second of all workers, by three reckonings."""

    true: float
    outside: float
    told: float


def rates(shim: Path, workers: int, seconds: float, turn: float, turns: int) -> Rates:
    """Measure so many turns of workers whose reads take `seconds`."""
    requests, ask = os.pipe()
    answers, theirs = os.pipe()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        directory, log, cpus = (Path(scratch, name) for name in ("d", "log", "cpus"))
        directory.mkdir()
        cpus.write_text("0-1023\n")
        argv = [str(BENCH), "--workload", "DRBL", "--dir", str(directory)]
        argv += ["--cpus", f"0-{workers - 1}", "--slice", f"{turn:g}"]
        argv += ["--min-window", f"{turn / 2:g}"]
        argv += ["--sync-fds", f"{requests},{theirs}"]
        environment = {
            **os.environ,
            "LD_PRELOAD": str(shim),
            "READS_LOG": str(log),
            "READS_US": str(round(1e6 * seconds)),
            "READS_CPUS": str(cpus),
        }
        process = subprocess.Popen(
            argv, env=environment, pass_fds=(requests, theirs), stdout=subprocess.PIPE, text=True
        )
        os.close(requests)
        os.close(theirs)
        with os.fdopen(answers) as lines:
            lines.readline()
            told = []
            for _ in range(turns):
                os.write(ask, b"t")
                told.append(lines.readline().split())
            os.close(ask)
        result = json.loads(process.communicate()[0])
        numbers = memoryview(log.read_bytes()).cast("Q").tolist()
    reads = list(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))
    inside = 0.9 * turn * 1e9
    begins = [window["start_ns"] for window in result["windows"]]
    counted = sum(any(0 < end - begin <= inside for begin in begins) for _, _, end in reads)
    of_worker: dict[int, list[int]] = {}
    for worker, start, end in reads:
        of_worker.setdefault(worker, []).append(end - start)
    return Rates(
        true=sum(1e9 * len(own) / sum(own) for own in of_worker.values()),
        outside=1e9 * counted / (inside * len(begins)),
        told=sum(int(ops) for ops, *_ in told) / sum(float(length) for _, length, *_ in told),
    )


def main() -> int:
    """A row for each number of workers and latency; the worst errors at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", default="2,4,8,16")
    parser.add_argument("--latencies", default="3.0,3.2,3.6,4.2,4.6,5.3,6.0", help="milliseconds")
    parser.add_argument("--turn", type=float, default=0.02, help="seconds")
    parser.add_argument("--turns", type=int, default=20, help="of each latency")
    arguments = parser.parse_args()
    latencies = [float(one) / 1e3 for one in arguments.latencies.split(",")]
    worst = {"outside": 0.0, "told": 0.0}
    with tempfile.TemporaryDirectory() as directory:
        shim = Path(directory, "reads.so")
        argv = ["cc", "-shared", "-fPIC", "-o", str(shim), "-x", "c", "-"]
        subprocess.run(argv, input=_SHIM, text=True, check=True)
        print("| workers | ms | against ms | true ratio | counted from outside | told |")
        print("|--:|--:|--:|--:|--:|--:|")
        for workers in map(int, arguments.workers.split(",")):
            found = [
                rates(shim, workers, one, arguments.turn, arguments.turns) for one in latencies
            ]
            for index in range(1, len(found)):
                new, base = found[index], found[index - 1]
                true, outside, told = (
                    getattr(new, name) / getattr(base, name) for name in ("true", "outside", "told")
                )
                print(
                    f"| {workers} | {1e3 * latencies[index]:g} | {1e3 * latencies[index - 1]:g} | "
                    f"{true:.3f} | {outside:.3f} | {told:.3f} |"
                )
                for name, ratio in (("outside", outside), ("told", told)):
                    worst[name] = max(worst[name], abs(math.log(ratio / true)))
    print(f"\nworst error: from outside {worst['outside']:.1%}, told {worst['told']:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
