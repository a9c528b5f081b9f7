# SPDX-License-Identifier: GPL-2.0-only
"""What several formats take from a cell."""

from collections.abc import Iterable
from datetime import datetime

from fscale.model.bench import CpuTimes
from fscale.model.results import Cell, Run


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """By workload, place, core count and repetition."""
    return sorted(
        cells,
        key=lambda c: (
            *(c.key.workload, c.key.medium, c.key.mode, c.key.filesystem),
            *(options(c), c.key.side or "", c.key.profile or "", c.key.duration),
            *(c.key.cores, c.key.repetition),
        ),
    )


def options(cell: Cell) -> str:
    """Of the workload: name=value, separated by blanks."""
    return " ".join(f"{name}={value}" for name, value in sorted(cell.key.options.items()))


def workers(cell: Cell) -> int | None:
    """How many processes had their operations counted; None where that was not recorded."""
    return len(cell.bench.workers) if cell.bench and cell.bench.workers else None


def simulated(run: Run, cell: Cell) -> bool:
    """Whether no machine but the simulator made the cell, also where it failed."""
    return cell.simulation is not None or run.machine.simulated


def cpu_times(cell: Cell) -> CpuTimes | None:
    """The time of the CPUs under test where it was recorded: a simulated cell has zeros."""
    return cell.cpu if cell.cpu is not None and cell.cpu.total > 0 else None


def cpu_seconds(times: CpuTimes, state: str) -> float:
    """Of one of `analysis.summary.CPU_STATES`, where irq has softirq in it."""
    seconds = float(getattr(times, state))
    return seconds + times.softirq if state == "irq" else seconds


def moment(text: str) -> datetime | None:
    """The time that ISO 8601 text says; None where it says none, or not in which zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
