# SPDX-License-Identifier: GPL-2.0-only
"""How often the boots of `fscale commute` agree, and where calls that share nothing conflict.

    bin/fscale commute --each 4 --boots 10 --output results/ten-boots
    .venv/bin/python -m tests.validation.commute_boots --each 4 results/ten-boots

A control is a test of two processes whose calls have no file, directory or pipe in common. What it
conflicts at, if at all, is shared by all processes of the kernel.
"""

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fscale.commute.calls import Call
from fscale.commute.compare import appearing
from fscale.commute.conflicts import Conflict
from fscale.commute.generate import PairTest, Selection, execute
from fscale.commute.posix import CALLS
from fscale.commute.states import Access, Initial, World, completed
from fscale.commute.store import Store

DRAWS = 400
Boot = dict[str, list[Conflict]]


def things(access: Access) -> set[tuple[str, object]]:
    """The files, directories and pipes that a part of the state belongs to, or names."""
    kind, *rest = access.key
    match kind, access.value:
        case "name", inode:
            return {("directory", rest[0]), *([] if inode is None else [("inode", inode)])}
        case "file" | "memory", (of, thing, *_):
            return {(of, thing)}
        case (("length" | "links" | "page"), _):
            return {("inode", rest[0])}
        case "queue", _:
            return {("pipe", rest[0])}
    return set()


def named(call: Call) -> set[tuple[str, object]]:
    """The directories that a call names, which it may lock whatever it finds there."""
    return {("directory", one[0]) for one in call.arguments if isinstance(one, tuple) and one[1:]}


def is_control(test: PairTest) -> bool:
    """Whether the calls are of two processes, change nothing, and touch nothing together.

    What changes a file system may meet in its journal or in its lists of inodes.
    """
    if test.a.process == test.b.process:
        return False
    known: Initial = completed(test.known)
    world, _ = execute(World(known), test.a, test.b, "ab")
    if any(access.kind == "put" for access in world.trace):
        return False
    of_a, of_b = (
        set().union(named(call), *(things(one) for one in world.trace if one.step == step))
        for step, call in (("a", test.a), ("b", test.b))
    )
    return of_a.isdisjoint(of_b)


def alarms(boots: Sequence[Boot], size: int) -> tuple[float, float]:
    """How often a test newly conflicts, of DRAWS comparisons of so many boots with as many.

    At the same bytes of a line, and at any.
    """
    draw = random.Random(1)
    same = every = 0
    for _ in range(DRAWS):
        drawn = draw.sample(boots, 2 * size)
        base, new = (
            {test: [boot[test] for boot in side] for test in boots[0]}
            for side in (drawn[:size], drawn[size:])
        )
        found = appearing(base, new).values()
        same += any(not one.layout for one in found)
        every += bool(found)
    return same / DRAWS, every / DRAWS


def main() -> None:
    """Read the boots, and print what they agree on."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--each", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    _, tests = Selection(calls=tuple(CALLS), each=given.each or None, seed=given.seed).draw()
    store = Store(given.results)
    files = sorted((given.results / "boots").glob("*.jsonl"))
    loaded = [found for path in files if (found := store.load_boot(f"boots/{path.name}"))]
    boots = [found for _, found in loaded]
    for what, kept in (
        ("any", boots),
        ("the same", [{t: [c for c in b[t] if not c.layout] for t in b} for b in boots]),
    ):
        agreed = sum(len({bool(boot[test.id]) for boot in kept}) == 1 for test in tests)
        print(
            f"{agreed} of {len(tests)} tests have one verdict in {len(kept)} boots at {what} bytes"
        )
    for size in range(1, len(boots) // 2 + 1):
        same, every = alarms(boots, size)
        print(
            f"A/A of {size} boots per side: a change at the same bytes {same:.1%}, any {every:.1%}"
        )
    controls = [test for test in tests if is_control(test)]
    calls: Counter[tuple[str, str]] = Counter()
    objects: Counter[str] = Counter()
    once: Counter[str] = Counter()
    for test in controls:
        found_by = [{one.object for one in boot[test.id]} for boot in boots]
        always = set.intersection(*found_by)
        calls[test.pair] += bool(always)
        objects.update(always)
        once.update(set().union(*found_by) - always)
    free = sum(not any(boot[test.id] for boot in boots) for test in controls)
    print(f"{len(controls)} controls: {free} conflict in no boot, {calls.total()} in every boot")
    print("objects in every boot:", *objects.most_common(12), sep="\n  ")
    print("objects in some boots:", *once.most_common(12), sep="\n  ")
    print("pairs of calls:", *((pair, n) for pair, n in calls.most_common(12) if n), sep="\n  ")


if __name__ == "__main__":
    main()
