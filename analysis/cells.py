# SPDX-License-Identifier: GPL-2.0-only
"""Values of a cell that tables and formats share."""

from collections.abc import Collection, Iterable
from datetime import datetime

from fscale.model.bench import CpuTimes
from fscale.model.files import printable
from fscale.model.results import NO_MEDIUM, Cell, CellKey, Run
from fscale.model.words import natural


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Sort cells by workload, place, core count and repetition."""
    return sorted(
        cells,
        key=lambda c: (
            *(c.key.workload, c.key.medium, c.key.mode, c.key.filesystem),
            *(natural(c.key.variant), c.key.side or "", c.key.profile or "", c.key.duration),
            *(c.key.cores, c.key.repetition),
        ),
    )


def options(key: CellKey) -> str:
    """The workload's options: name=value, separated by blanks."""
    return " ".join(f"{name}={value}" for name, value in sorted(key.options.items()))


def workers(cell: Cell) -> int | None:
    """The number of processes whose operations were counted; None if not recorded."""
    return len(cell.bench.workers) if cell.bench and cell.bench.workers else None


def simulated(run: Run, cell: Cell) -> bool:
    """Whether the simulator made the cell; also true for failed cells."""
    return cell.simulation is not None or run.machine.simulated


def cpu_times(cell: Cell) -> CpuTimes | None:
    """The times of the CPUs under test; None if not recorded (simulated cells have zeros)."""
    return cell.cpu if cell.cpu is not None and cell.cpu.total > 0 else None


def cpu_seconds(times: CpuTimes, state: str) -> float:
    """The seconds in one of `fscale.analysis.summary.CPU_STATES`; irq includes softirq."""
    seconds = float(getattr(times, state))
    return seconds + times.softirq if state == "irq" else seconds


def moment(text: str) -> datetime | None:
    """The time in an ISO 8601 text; None if it has none, or no time zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def one_line(text: str) -> str:
    """The text in one line, without unprintable characters."""
    return printable(" ".join(text.split()))


def marks(keys: Collection[CellKey]) -> list[tuple[str, ...]]:
    """What tells each of several curves from those of other media and modes, if there are any."""
    media, modes = {key.medium for key in keys} - {NO_MEDIUM}, {key.mode for key in keys}
    return [
        (
            *([key.medium] if len(media) > 1 and key.medium != NO_MEDIUM else []),
            *([key.mode] if len(modes) > 1 else []),
        )
        for key in keys
    ]
