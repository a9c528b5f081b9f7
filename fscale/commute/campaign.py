# SPDX-License-Identifier: GPL-2.0-only
"""Boots guests, unless the results directory has their boots."""

import contextlib
import random
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from fscale.commute.conflicts import Conflict, lasting
from fscale.commute.generate import ORDERS, PairTest
from fscale.commute.guest import Guest, execute
from fscale.commute.matrix import Matrix, Pair, matrix
from fscale.commute.store import BootHead, Store, boot_name
from fscale.model.errors import FscaleError
from fscale.model.terminal import say, terminal
from fscale.runner.progress import duration

# Seconds of a boot, and of each test in it: 681 tests took 22 s, 3,152 took 61 s, on one CPU of a
# virtual machine.
BOOT_SECONDS = 11.0
TEST_SECONDS = 0.016
POLL_SECONDS = 0.5


def estimate_seconds(boots: int, tests: int, jobs: int) -> float:
    """Estimate the seconds of some boots, each with so many tests, `jobs` at a time."""
    return -(-boots // jobs) * (BOOT_SECONDS + tests * TEST_SECONDS)


@dataclass
class _Running:
    """A boot that executes its tests."""

    name: str
    head: BootHead
    tests: Sequence[PairTest]
    cpu: int
    execution: Generator[int, None, list[list[Conflict]]]
    executed: int = 0
    begun: float = field(default_factory=time.monotonic)


class Campaign:
    """The boots of some guests, each of which executes all tests once."""

    def __init__(
        self,
        store: Store,
        guests: Sequence[Guest],
        tests: Sequence[PairTest],
        boots: int,
        seed: int,
    ) -> None:
        """The orders of the calls alternate, and each boot has a seed of its own, from `seed`.

        Each executes the tests in another order: what the kernel does once in so many calls, such
        as the emptying of a per-CPU batch, is then not in the same test of every boot.

        Raises:
            FscaleError: a boot in `store` is damaged or of another guest, or the boots of two
                guests would have one name.
        """
        self._store = store
        self._tests = tests
        self._boots = boots
        self._seed = seed
        self.guests = self._distinct(guests)
        names = [(guest, number) for guest in self.guests for number in range(boots)]
        self._found = {self._name(*one): self._load(*one) for one in names}
        self._spent: list[float] = []

    def measure(self, sizes: Mapping[Pair, int], cpus: Sequence[int]) -> Iterator[Matrix]:
        """Execute the boots that are not stored, one at a time on each CPU.

        `sizes`: how many tests a pair has. The matrix of each guest follows its last boot.

        Raises:
            BootError, InterpreterError: a guest, or a test in it, failed.
        """
        places = [(guest, number) for guest in self.guests for number in range(self._boots)]
        waiting = [place for place in places if self._found[self._name(*place)] is None]
        free = list(cpus)
        running: list[_Running] = []
        with contextlib.ExitStack() as all_boots:
            progress = all_boots.enter_context(_progress(len(waiting) * len(self._tests)))
            for guest in self.guests:
                names = [self._name(guest, number) for number in range(self._boots)]
                while any(self._found[name] is None for name in names):
                    while waiting and free:
                        self._say_left(*waiting[0], len(cpus))
                        running.append(self._start(*waiting.pop(0), free.pop(0)))
                        all_boots.callback(running[-1].execution.close)
                    time.sleep(POLL_SECONDS)
                    for one in [one for one in running if self._ends(one)]:
                        running.remove(one)
                        free.append(one.cpu)
                    done = len(self._spent) * len(self._tests)
                    progress(done + sum(one.executed for one in running))
                yield self._matrix(guest, names, sizes)

    def _say_left(self, guest: Guest, number: int, jobs: int) -> None:
        boots = list(self._found.values()).count(None)
        seconds = estimate_seconds(boots, len(self._tests), jobs)
        if self._spent:
            seconds = sum(self._spent) / len(self._spent) * -(-boots // jobs)
        place = f"boot {number + 1} of {self._boots}: {guest.name} on {guest.kernel.release}"
        say(f"{place}; about {duration(seconds)} left", error=True)

    def _start(self, guest: Guest, number: int, cpu: int) -> _Running:
        head = self._head(guest, number)
        tests = random.Random(head.seed).sample(self._tests, len(self._tests))
        logs = self._store.directory / "guest"
        execution = execute(guest, tests, head.order, head.seed, cpu, logs)
        return _Running(self._name(guest, number), head, tests, cpu, execution)

    def _ends(self, one: _Running) -> bool:
        """Whether the boot has executed its tests; then it is stored."""
        try:
            one.executed = next(one.execution)
        except StopIteration as end:
            self._spent.append(time.monotonic() - one.begun)
            found = dict(zip((test.id for test in one.tests), end.value, strict=True))
            self._store.save_boot(one.name, one.head, found)
            self._found[one.name] = found
            return True
        return False

    def _matrix(self, guest: Guest, names: Sequence[str], sizes: Mapping[Pair, int]) -> Matrix:
        boots = [found for name in names if (found := self._found[name]) is not None]
        kept = {test: lasting([boot[test.id] for boot in boots]) for test in self._tests}
        return matrix(guest.name, guest.kernel.release, self._boots, kept, sizes)

    def _distinct(self, guests: Sequence[Guest]) -> list[Guest]:
        known: dict[str, Guest] = {}
        for guest in guests:
            other = known.setdefault(self._name(guest, 0), guest)
            if other.identity != guest.identity:
                raise FscaleError(
                    f"two kernels with {guest.name} have the release {guest.kernel.release}; give "
                    "each another --output"
                )
        return list(known.values())

    def _head(self, guest: Guest, number: int) -> BootHead:
        return BootHead(guest=guest.identity, order=ORDERS[number % 2], seed=self._seed + number)

    def _name(self, guest: Guest, number: int) -> str:
        return boot_name(guest.name, guest.kernel.release, number + 1)

    def _load(self, guest: Guest, number: int) -> dict[str, list[Conflict]] | None:
        name = self._name(guest, number)
        if (stored := self._store.load_boot(name)) is None:
            return None
        head, found = stored
        why = None
        if head != self._head(guest, number):
            why = "is of another kernel, module, program or --seed"
        elif found.keys() != {test.id for test in self._tests}:
            why = "has other tests"
        if why:
            raise FscaleError(f"{self._store.directory / name} {why}; use another --output")
        return found


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
