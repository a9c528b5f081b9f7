# SPDX-License-Identifier: GPL-2.0-only
"""How many workers each CPU of a run has, where they are, and which CPUs have none.

`CellKey.crew` has the part of it that a cell's name contains.
"""

from collections.abc import Collection
from typing import Any

from fscale.model.results import Machine, Run
from fscale.model.words import plural, ranges

WORKERS_PER_CPU, PLACEMENT, KEEP_FREE = "workers_per_cpu", "placement", "keep_free"
DEFAULTS: dict[str, int | str] = {WORKERS_PER_CPU: 1, PLACEMENT: "packed", KEEP_FREE: 0}
"""keys of a suite -> their values in runs that do not record them"""


def chosen(run: Run) -> dict[str, Any]:
    """Return the values of a run; `keep_free` is the number of CPUs, also if a share was given.

    `workers_per_cpu` is a list if the run is a sweep of it.
    """
    recorded = {name: run.suite.get(name, usual) for name, usual in DEFAULTS.items()}
    return recorded | {KEEP_FREE: len(run.machine.kept_free)}


def words(run: Run, keys: Collection[str] = tuple(DEFAULTS)) -> str:
    """Return the values that are not the defaults, as `--set` takes them; empty if all are."""
    values = chosen(run)
    return " ".join(f"{k}={values[k]}" for k in keys if values[k] != DEFAULTS[k])


def sentences(run: Run) -> list[str]:
    """Describe the values that are not the defaults, one sentence each."""
    values, machine = chosen(run), run.machine
    lines = []
    if (workers := values[WORKERS_PER_CPU]) != DEFAULTS[WORKERS_PER_CPU]:
        counts = " or ".join(map(str, workers)) if isinstance(workers, list) else workers
        lines.append(
            f"{counts} workers share each CPU under test (oversubscription), so figures include "
            "the work of the scheduler"
        )
    if values[PLACEMENT] != DEFAULTS[PLACEMENT]:
        lines.append(
            "the CPUs of a core count come from all sockets, NUMA nodes and L3 caches in turn "
            f"(placement {values[PLACEMENT]})"
        )
    return [*lines, *kept_free(machine)]


def kept_free(machine: Machine) -> list[str]:
    """Describe the CPUs that are kept free; empty if there are none."""
    if not machine.kept_free:
        return []
    subject = "CPUs {} stay" if len(machine.kept_free) > 1 else "CPU {} stays"
    return [
        f"{subject.format(ranges(machine.kept_free))} online without a worker, for kernel threads "
        f"and interrupts; core counts refer to the {plural(len(machine.cpu_order), 'CPU')} left"
    ]
