# SPDX-License-Identifier: GPL-2.0-only
"""A neighbour that comes and goes: a process that copies memory for a while, then sleeps.

    .venv/bin/python -m tests.validation.neighbour --busy 5 --idle 10
    .venv/bin/python -m tests.validation.neighbour --share 0.03

The lengths of both are exponential, with the given means, from a seed. With a share it takes so
much of a CPU, in beats of 50 ms, and no memory. It runs until it is killed.
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fscale.model.paths import ROOT

BYTES = 64 << 20  # more than a cache holds
BEAT = 0.05  # seconds


def work(busy: float, idle: float, seed: int) -> None:
    """Copy and sleep in turn, for ever; mean seconds of each."""
    rng, memory = random.Random(seed), bytearray(BYTES)
    while True:
        until = time.monotonic() + rng.expovariate(1 / busy)
        while time.monotonic() < until:
            memory[: BYTES // 2] = memory[BYTES // 2 :]
        time.sleep(rng.expovariate(1 / idle))


def beat(share: float) -> None:
    """Take a share of a CPU, for ever: its CPU time over the time that goes by."""
    begun, worked = time.monotonic(), time.thread_time()
    while True:
        while time.thread_time() - worked < share * (time.monotonic() - begun):
            pass
        time.sleep(BEAT)


@contextmanager
def sharing(share: float) -> Iterator[None]:
    """One that takes a share of a CPU is there during the `with` block; with 0, none."""
    with started([f"--share={share}"] if share else []):
        yield


@contextmanager
def neighbour(busy: float, idle: float, seed: int = 1) -> Iterator[None]:
    """One is there during the `with` block; with `busy` 0, none."""
    with started([f"--busy={busy}", f"--idle={idle}", f"--seed={seed}"] if busy else []):
        yield


@contextmanager
def started(given: list[str]) -> Iterator[None]:
    """The process with these arguments; without any, none."""
    if not given:
        yield
        return
    with subprocess.Popen([sys.executable, "-m", __name__, *given], cwd=ROOT) as process:
        try:
            yield
            if process.poll() is not None:
                raise SystemExit(f"the neighbour ended with {process.returncode}")
        finally:
            process.kill()


def main() -> None:
    """Be the neighbour."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=float, default=5.0)
    parser.add_argument("--idle", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.0)
    given = parser.parse_args()
    if given.share:
        beat(given.share)
    work(given.busy, given.idle, given.seed)


if __name__ == "__main__":
    main()
