# SPDX-License-Identifier: GPL-2.0-only
"""All boots of some guests: those that the results directory has, and those that are executed."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from fscale.commute.boot import Boot, Execute
from fscale.commute.conflicts import lasting
from fscale.commute.generate import ORDERS, PairTest
from fscale.commute.guest import Guest
from fscale.commute.matrix import Matrix, Pair, matrix
from fscale.commute.store import BootHead, Found, Store, boot_name
from fscale.model.errors import FscaleError


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

        Raises:
            FscaleError: a boot in `store` is damaged or of another guest, or the boots of two
                guests would have one name.
        """
        self._store = store
        self._tests = tests
        self._count = boots
        self._seed = seed
        self.guests = self._distinct(guests)
        self._boots = [[self._boot(guest, n) for n in range(boots)] for guest in self.guests]
        every = [boot for its in self._boots for boot in its]
        self._found = {boot.name: found for boot in every if (found := self._load(boot))}
        self.waiting = [boot for boot in every if boot.name not in self._found]

    def measure(self, sizes: Mapping[Pair, int], execute: Execute) -> Iterator[Matrix]:
        """Execute the boots that are not stored, and store each when it ends.

        `sizes`: how many tests a pair has. The matrix of each guest follows its last boot.

        Raises:
            FscaleError: a guest, or a test in it, failed.
        """
        with contextlib.closing(execute(self.waiting)) as ended:
            for guest, boots in zip(self.guests, self._boots, strict=True):
                while any(boot.name not in self._found for boot in boots):
                    boot, found = next(ended)
                    self._store.save_boot(boot.name, boot.head, found)
                    self._found[boot.name] = found
                each = [self._found[boot.name] for boot in boots]
                kept = {test: lasting([one[test.id] for one in each]) for test in self._tests}
                yield matrix(guest.name, guest.kernel.release, self._count, kept, sizes)

    def _distinct(self, guests: Sequence[Guest]) -> list[Guest]:
        known: dict[str, Guest] = {}
        for guest in guests:
            other = known.setdefault(boot_name(guest.name, guest.kernel.release, 1), guest)
            if other.identity != guest.identity:
                raise FscaleError(
                    f"two kernels with {guest.name} have the release {guest.kernel.release}; give "
                    "each another --output"
                )
        return list(known.values())

    def _boot(self, guest: Guest, number: int) -> Boot:
        return Boot(
            boot_name(guest.name, guest.kernel.release, number + 1),
            f"boot {number + 1} of {self._count}: {guest.name} on {guest.kernel.release}",
            guest,
            BootHead(guest=guest.identity, order=ORDERS[number % 2], seed=self._seed + number),
        )

    def _load(self, boot: Boot) -> Found | None:
        if (stored := self._store.load_boot(boot.name)) is None:
            return None
        head, found = stored
        why = None
        if head != boot.head:
            why = "is of another kernel, module, program or --seed"
        elif found.keys() != {test.id for test in self._tests}:
            why = "has other tests"
        if why:
            raise FscaleError(f"{self._store.directory / boot.name} {why}; use another --output")
        return found
