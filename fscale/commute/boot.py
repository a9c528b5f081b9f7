# SPDX-License-Identifier: GPL-2.0-only
"""The boots of a campaign, and their execution on this machine."""

import contextlib
import random
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from fscale.commute.conflicts import Conflict
from fscale.commute.generate import PairTest
from fscale.commute.guest import Guest, execute
from fscale.commute.store import BootHead, Found
from fscale.model.terminal import say, terminal
from fscale.runner.progress import duration
from fscale.sim.boot import BootError

# Seconds of a boot, and of each test in it: 681 tests took 22 s, 3,152 took 61 s, on one CPU of a
# virtual machine.
BOOT_SECONDS = 11.0
TEST_SECONDS = 0.016
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Boot:
    """A boot of a guest, in which it executes all tests."""

    name: str
    """of its file in the results directory"""
    title: str
    guest: Guest
    head: BootHead


Ended = Generator[tuple[Boot, Found], None, None]
"""boots, in the order in which they end; closing it ends the others"""
Execute = Callable[[Sequence[Boot]], Ended]


def estimate_seconds(boots: int, each: float, jobs: int) -> float:
    """Estimate the seconds of some boots of `each` seconds, `jobs` at a time."""
    return -(-boots // jobs) * each


def estimate_boot(tests: int) -> float:
    """Estimate the seconds of a boot that executes so many tests."""
    return BOOT_SECONDS + tests * TEST_SECONDS


@dataclass
class _Running:
    boot: Boot
    tests: Sequence[PairTest]
    cpu: int
    execution: Generator[int, None, list[list[Conflict]]]
    executed: int = 0
    begun: float = field(default_factory=time.monotonic)


def execute_here(
    boots: Sequence[Boot], tests: Sequence[PairTest], cpus: Sequence[int], logs: Path
) -> Ended:
    """Execute boots on this machine, one at a time on each of `cpus`.

    A guest that ends early, as by a fault of the emulator, is booted once more.

    Raises:
        BootError: it ended early again; the directory `logs` has why.
        InterpreterError: a test in it failed, likewise.
    """
    waiting, free = list(boots), list(cpus)
    again: list[Boot] = []
    running: list[_Running] = []
    spent: list[float] = []
    with contextlib.ExitStack() as all_boots:
        progress = all_boots.enter_context(_progress(len(boots) * len(tests)))
        while waiting or running:
            while waiting and free:
                each = sum(spent) / len(spent) if spent else estimate_boot(len(tests))
                left = estimate_seconds(len(waiting) + len(running), each, len(cpus))
                say(f"{waiting[0].title}; about {duration(left)} left", error=True)
                running.append(_start(waiting.pop(0), tests, free.pop(0), logs))
                all_boots.callback(running[-1].execution.close)
            time.sleep(POLL_SECONDS)
            for one in list(running):
                try:
                    one.executed = next(one.execution)
                except StopIteration as end:
                    running.remove(one)
                    free.append(one.cpu)
                    spent.append(time.monotonic() - one.begun)
                    ids = (test.id for test in one.tests)
                    yield one.boot, dict(zip(ids, end.value, strict=True))
                except BootError as error:
                    if one.boot in again:
                        raise
                    running.remove(one)
                    free.append(one.cpu)
                    again.append(one.boot)
                    waiting.append(one.boot)
                    say(f"warning: {one.boot.title}: {error}; it is booted once more", error=True)
            progress(len(spent) * len(tests) + sum(one.executed for one in running))


def _start(boot: Boot, tests: Sequence[PairTest], cpu: int, logs: Path) -> _Running:
    """Each boot executes the tests in an order of its own.

    What the kernel does once in so many calls, such as the emptying of a per-CPU batch, is then not
    in the same test of every boot.
    """
    head = boot.head
    shuffled = random.Random(head.seed).sample(tests, len(tests))
    execution = execute(boot.guest, shuffled, head.order, head.seed, cpu, logs)
    return _Running(boot, shuffled, cpu, execution)


@contextlib.contextmanager
def _progress(tests: int) -> Iterator[Callable[[int], None]]:
    """A progress bar if standard error is a terminal; takes the number of executed tests."""
    with Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=terminal(error=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task("", total=tests)
        yield lambda done: bar.update(task, completed=done)
