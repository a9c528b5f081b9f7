# SPDX-License-Identifier: GPL-2.0-only
"""A planted excess of put-off work on one side: does it reach the other side's turns?

    .venv/bin/python -m tests.validation.excess --output results/validation/excess

After each operation side B makes a page of a file of its own dirty (`pages`: to be written back),
or makes an inode and lets it go (`inodes`: freed after an RCU grace period). Side A does neither.
Half of A's turns come after one of B's, half after one of its own. What B has left makes the former
slower than the latter; so do caches that B has filled, which a run without a plant tells (`none`).
"""

import json
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np

from fscale.ab import plan
from fscale.ab.point import SIDES
from fscale.ab.slices import add_settling
from fscale.ab.slicing import DEFAULT, Slicing
from fscale.analysis.compare.sides import open_sides
from fscale.model.results import Cell
from tests.validation.delay import BUILD, patched, script
from tests.validation.windows import arguments, run

KINDS = ("none", "pages", "inodes")
WORKLOADS = "DRBL,DWOL,MWCL,MWUL"
SEED = 1  # of windows.run()
OPERATION = "\toutcome = op(w);\t"
EXCESS = "\toutcome = op(w); planted_excess();\t"
DECLARED = "void planted_excess(void);\n\n/* The plain loop: "
VARIABLE = "FSCALE_PLANTED_EXCESS"
SOURCE = f"""\
// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workload.h"

#define PAGE 4096
#define PAGES 4096

static void make_dirty(void)
{{
	static const char page[PAGE];
	static uint64_t next;
	static int fd = -1;

	if (fd < 0)
		fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (pwrite(fd, page, PAGE, (off_t)(next++ % PAGES) * PAGE) != PAGE)
		abort();
}}

static void make_inode(void)
{{
	int fd = memfd_create("planted", MFD_CLOEXEC);

	if (fd < 0 || close(fd))
		abort();
}}

static void (*excess)(void);

__attribute__((constructor)) static void planted_read(void)
{{
	const char *kind = getenv("{VARIABLE}");

	if (kind && !strcmp(kind, "pages"))
		excess = make_dirty;
	else if (kind && !strcmp(kind, "inodes"))
		excess = make_inode;
}}

void planted_excess(void)
{{
	if (excess)
		excess();
}}
"""


def plants() -> dict[str, Path]:
    """Kind of excess, or "none" -> a microbenchmark that does it."""
    binary = BUILD / "excess" / "build/microbench/fscale-bench"
    if not binary.exists():
        changes = {OPERATION: EXCESS, "/* The plain loop: ": DECLARED}
        binary = patched("excess", changes, {"planted.c": SOURCE})
    return {
        kind: script(binary, f"fscale-bench-excess-{kind}", f"{VARIABLE}={kind}") for kind in KINDS
    }


def at_once(*arguments: object) -> Slicing:
    """Turns that follow one another."""
    return DEFAULT


WAYS: dict[str, Callable[..., Slicing]] = {"ab": add_settling, "at once": at_once}


def afterwards(cell: Cell) -> float:
    """The logarithm of the rate of side A's turns after B's over that of those after its own."""
    coin = random.Random(f"{SEED} {cell.key.point} {cell.key.repetition}")
    turns = iter(cell.slices or ())
    rates: dict[str, list[float]] = {side: [] for side in SIDES}
    before = SIDES[-1]  # the last one that warmed up
    for _ in range(len(cell.slices or ()) // 2):
        outer, inner = coin.sample(SIDES, 2)
        for side in (outer, inner, inner, outer):
            if side == SIDES[0]:
                turn = next(turns)
                if turn.seconds:
                    rates[before].append(turn.ops / turn.seconds)
            before = side
    return float(np.log(np.median(rates["B"]) / np.median(rates["A"])))


def effect(output: Path) -> tuple[float, float]:
    """The mean of `afterwards` of the pairs, and its standard error."""
    cells = [cell for cell in open_sides(output, None).base_cells if cell.status == "ok"]
    logs = np.array([afterwards(cell) for cell in cells])
    return float(logs.mean()), float(logs.std(ddof=1) / np.sqrt(logs.size))


def main() -> None:
    """Measure each plant in each workload by each way, print, and write it as JSON."""
    given = arguments(__doc__, WORKLOADS, pairs=8)
    binaries, fs = plants(), given.filesystem
    base = f"{fs}:binary={binaries['none']}"
    table = []
    for workload, (way, how) in product(given.workloads.split(","), WAYS.items()):
        found = {}
        for kind in KINDS:
            place = given.output / workload / way.replace(" ", "-") / kind
            new = f"{fs}:binary={binaries[kind]}"
            with mock.patch.object(plan, "settling", how):
                cores = [given.cores]
                run(base, new, [workload], given.pairs, 0.5, place, cores=cores, slices=True)
            found[kind] = effect(place)
        said = ", ".join(f"{kind} {mean:+.1%} ± {e:.1%}" for kind, (mean, e) in found.items())
        print(f"{workload}, {way}: {said}", flush=True)
        table.append({"workload": workload, "way": way, "cores": given.cores, **found})
    (given.output / "excess.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
