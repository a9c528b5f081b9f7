# SPDX-License-Identifier: GPL-2.0-only
"""Results of `fscale commute` whose conflicts are known; nothing is booted."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fscale.commute.conflicts import Conflict, lasting
from fscale.commute.generate import PairTest, generate
from fscale.commute.matrix import Matrices, matrix
from fscale.commute.store import BootHead, Store, boot_name

TESTS = [*generate("link", "unlink")][:3] + [*generate("stat", "stat")][:2]
IDS = [test.id for test in TESTS]
RWSEM = Conflict("i_rwsem", False, ("down_write",), ("up_write",))
COUNT = Conflict("file.f_count", False, (), ())
HEAD = BootHead(guest="one", order="ab", seed=1)


def write(
    output: Path,
    boots: Sequence[dict[int, list[Conflict]]],
    tests: Sequence[PairTest] = TESTS,
    filesystems: Sequence[str] = ("tmpfs",),
    kernels: Sequence[str] = ("6.1",),
) -> Path:
    """A result; `boots` have the conflicts of each test by its place, if it has some."""
    store = Store(output)
    store.save_tests(tests)
    sizes = Counter(test.pair for test in tests)
    made = []
    for name, kernel in ((name, kernel) for name in filesystems for kernel in kernels):
        for number, found in enumerate(boots, 1):
            conflicts = {test.id: found.get(at, []) for at, test in enumerate(tests)}
            store.save_boot(boot_name(name, kernel, number), HEAD, conflicts)
        kept = {test: lasting([b.get(at, []) for b in boots]) for at, test in enumerate(tests)}
        made.append(matrix(name, kernel, len(boots), kept, sizes))
    store.save_matrices(Matrices(matrices=made))
    return output
