# SPDX-License-Identifier: GPL-2.0-only
"""Pack the matrices of `fscale commute` for docs/results/data.

python -m docs.scripts.pack_conflicts TITLE WHEN COMMAND results/RUN > docs/results/data/NAME.json
"""

import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fscale.commute.compare import FoundByBoots, appearing, boots_of
from fscale.commute.matrix import Matrix
from fscale.commute.store import Store

_OBJECTS = 10
_CHANGED_OBJECTS = 3


def packed(title: str, started: str, command: str, directory: Path) -> dict[str, Any]:
    """The matrices as one JSON object.

    Returns:
        `matrices`: of each file system and kernel the numbers of tests, and of those without a
        conflict; the estimated share of all tests; and [object, layout, pairs, tests] of the
        objects that spoil the most pairs. `years`: [file system, kernel, next kernel, freed, newly
        conflicting], of which the last two are [tests that conflict on one kernel alone, at the
        same bytes of a line, [object, tests] of the commonest].
    """
    store = Store(directory)
    matrices = store.load_matrices()
    return {
        "title": title,
        "runs": [{"started": started, "command": command}],
        "matrices": [_told(one) for one in matrices],
        "years": list(_changes(store, matrices)),
    }


def _changes(store: Store, matrices: Sequence[Matrix]) -> Iterator[list[Any]]:
    tests = store.load_tests()
    for name in dict.fromkeys(one.filesystem for one in matrices):
        kernels = [one for one in matrices if one.filesystem == name]
        found = [(one.kernel, boots_of(store, one, tests)) for one in kernels]
        for (old, before), (new, after) in itertools.pairwise(found):
            yield [name, old, new, _told_of(after, before), _told_of(before, after)]


def _told_of(before: FoundByBoots, after: FoundByBoots) -> tuple[int, list[tuple[str, int]]]:
    """How many tests conflict at the same bytes in `after` only, as `compare` says; and where."""
    tests = [one for one in appearing(before, after).values() if not one.layout]
    return len(tests), Counter(name for one in tests for name in sorted(one.objects)).most_common(
        _CHANGED_OBJECTS
    )


def _told(one: Matrix) -> dict[str, Any]:
    return {
        "filesystem": one.filesystem,
        "kernel": one.kernel,
        "boots": one.boots,
        "tests": one.total.tests,
        "free": one.total.free,
        "layout": one.total.layout,
        "share": round(one.share, 3),
        "spoilers": [
            [found.object, found.layout, len(found.pairs), found.tests]
            for found in one.spoilers[:_OBJECTS]
        ],
    }


def main() -> None:
    """Write to standard output."""
    title, started, command, directory = sys.argv[1:]
    found = packed(title, started, command, Path(directory))
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
