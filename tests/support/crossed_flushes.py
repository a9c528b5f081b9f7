# SPDX-License-Identifier: GPL-2.0-only
"""How often a log of writes breaks the order of flushes that cross; run in a guest.

One task writes a block, flushes, and writes a commit block with FUA, again and again. Another task
flushes as well, on the same CPU and only while the first one sleeps after its block. The first one
takes the CPU from it at a random moment, also within a flush that has the block. In the log no
commit block may stand before its block.

`python3 -m tests.support.crossed_flushes COMMITS` prints how many do, as JSON: with
dm-log-writes alone, and with the crash test's recorder.
"""

import json
import mmap
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import get_context

from fscale.vm import crashtest, logwrites

BLOCK = 4096
SIZE = 256 << 20
# An emulated flush takes some tens of microseconds.
SHORTEST, LONGEST = 1e-5, 1e-3
"""seconds of the first task's sleep"""


def _run_on_one_cpu(policy: int, priority: int) -> None:
    os.sched_setaffinity(0, {0})
    os.sched_setscheduler(0, policy, os.sched_param(priority))


def _flush(device: str) -> None:
    _run_on_one_cpu(os.SCHED_IDLE, 0)
    fd = os.open(device, os.O_RDWR)
    while True:
        os.fsync(fd)


def _commit(device: str, commits: int) -> None:
    # Its sleeps have no slack.
    _run_on_one_cpu(os.SCHED_FIFO, 1)
    rng = random.Random(1)
    page = mmap.mmap(-1, BLOCK)
    plain = os.open(device, os.O_RDWR | os.O_DIRECT)
    durable = os.open(device, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
    for number in range(commits):
        os.pwrite(plain, page, 2 * number * BLOCK)
        time.sleep(SHORTEST * (LONGEST / SHORTEST) ** rng.random())
        os.fsync(plain)
        os.pwrite(durable, page, (2 * number + 1) * BLOCK)
    os.close(plain)
    os.close(durable)


@contextmanager
def _flushes(device: str) -> Iterator[None]:
    task = get_context("fork").Process(target=_flush, args=(device,))
    task.start()
    try:
        yield
    finally:
        task.kill()
        task.join()


def late(recorder: AbstractContextManager[str], commits: int) -> int:
    """Commit blocks that the log has before their blocks."""
    with recorder as device, _flushes(device):
        task = get_context("fork").Process(target=_commit, args=(device, commits))
        task.start()
        task.join()
        if task.exitcode:
            sys.exit("the task that commits failed")
    with crashtest.LOG.open("rb") as log:
        entries = logwrites.read_log(log)
    at = {entry.offset // BLOCK: entry.index for entry in entries if entry.length}
    return sum(at[2 * number] > at[2 * number + 1] for number in range(commits))


def main(commits: int) -> None:
    """Print the counts."""
    crashtest.command(["modprobe", "brd", "rd_nr=2", f"rd_size={SIZE >> 10}", "max_part=0"])
    table = f"0 {SIZE // 512} log-writes {crashtest.DATA} {crashtest.LOG}"
    alone = late(crashtest.map_device(crashtest.RECORDER, table), commits)
    in_turn = late(crashtest.recorder(crashtest.DATA, crashtest.LOG, SIZE), commits)
    print(json.dumps({"alone": alone, "in turn": in_turn}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
