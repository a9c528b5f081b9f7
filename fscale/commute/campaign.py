# SPDX-License-Identifier: GPL-2.0-only
"""Boots guests one after another, unless the results directory has their boots."""

import contextlib
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

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


def estimate_seconds(boots: int, tests: int) -> float:
    """Estimate the seconds of some boots, each with so many tests."""
    return boots * (BOOT_SECONDS + tests * TEST_SECONDS)


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

    def measure(self, guest: Guest, sizes: Mapping[Pair, int], cpu: int) -> Matrix:
        """Execute the boots of a guest that are not stored; `sizes`: how many tests a pair has.

        Raises:
            BootError, InterpreterError: a guest, or a test in it, failed.
        """
        found = [self._boot(guest, number, cpu) for number in range(self._boots)]
        kept = {test: lasting([boot[test.id] for boot in found]) for test in self._tests}
        return matrix(guest.name, guest.kernel.release, self._boots, kept, sizes)

    def _boot(self, guest: Guest, number: int, cpu: int) -> dict[str, list[Conflict]]:
        name = self._name(guest, number)
        if (stored := self._found[name]) is not None:
            return stored
        place = f"boot {number + 1} of {self._boots}: {guest.name} on {guest.kernel.release}"
        say(f"{place}; about {duration(self._seconds_left())} left", error=True)
        head = self._head(guest, number)
        tests = random.Random(head.seed).sample(self._tests, len(self._tests))
        begun = time.monotonic()
        logs = self._store.directory / "guest"
        with _progress(len(tests)) as progress:
            conflicts = execute(guest, tests, head.order, head.seed, cpu, progress, logs)
        self._spent.append(time.monotonic() - begun)
        found = dict(zip((test.id for test in tests), conflicts, strict=True))
        self._store.save_boot(name, head, found)
        self._found[name] = found
        return found

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

    def _seconds_left(self) -> float:
        left = list(self._found.values()).count(None)
        if not self._spent:
            return estimate_seconds(left, len(self._tests))
        return sum(self._spent) / len(self._spent) * left

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
