# SPDX-License-Identifier: GPL-2.0-only
"""How many workers each CPU of a run has, where they are, and which CPUs have none.

`CellKey.crew` has the part of it that a cell's name contains.
"""

from fscale.model.results import CellKey, Machine, Run
from fscale.model.words import plural, ranges

WORKERS_PER_CPU, PLACEMENT, KEEP_FREE = "workers_per_cpu", "placement", "keep_free"
DEFAULTS: dict[str, int | str] = {WORKERS_PER_CPU: 1, PLACEMENT: "packed", KEEP_FREE: 0}
"""keys of a suite -> their values in runs that do not record them"""


def chosen(run: Run) -> dict[str, int | str]:
    """Return the values of a run; `keep_free` is the number of CPUs, also if a share was given."""
    recorded = {name: run.suite.get(name, usual) for name, usual in DEFAULTS.items()}
    return recorded | {KEEP_FREE: len(run.machine.kept_free)}


def words(run: Run) -> str:
    """Return the values that are not the defaults, as `--set` takes them; empty if all are."""
    values = chosen(run)
    return " ".join(f"{k}={v}" for k, v in values.items() if v != DEFAULTS[k])


def label(key: CellKey) -> str:
    """Return the same for a cell, whose key does not contain `keep_free`."""
    return " ".join(f"{name}={value}" for name, value in key.crew.items())


def sentences(run: Run) -> list[str]:
    """Describe the values that are not the defaults, one sentence each."""
    values, machine = chosen(run), run.machine
    lines = []
    if values[WORKERS_PER_CPU] != DEFAULTS[WORKERS_PER_CPU]:
        lines.append(
            f"{values[WORKERS_PER_CPU]} workers share each CPU under test (oversubscription), so "
            "figures include the work of the scheduler"
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
