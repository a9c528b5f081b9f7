# SPDX-License-Identifier: GPL-2.0-only
"""The metrics of a cell, by the names that comparisons, reports, exports and histories share."""

from collections.abc import Callable
from functools import partial
from typing import Literal

from fscale.model.latency import quantile, why_none
from fscale.model.results import Cell, Slice

THROUGHPUT = "throughput"
CPU_EFFICIENCY = "per-cpu-second"
COUNT = "count:"
INSTRUCTIONS = COUNT + "instructions"
SETTLED = "settled"
SPEEDUP = "speed-up"
DOUBLING = "gain-per-doubling"
PEAK = "peak-cores"

Metric = Literal[
    "throughput",
    "per-cpu-second",
    "settled",
    "count",
    "p50",
    "p99",
    "p99.9",
    "max",
    "slowest-worker",
    "jain",
    "per-joule",
]
METRICS: tuple[Metric, ...] = ("throughput", "per-cpu-second", "settled", "count")
"""those that are judged by default"""
LATENCIES: tuple[Metric, ...] = ("p50", "p99", "p99.9", "max")
SLOWEST: Metric = "slowest-worker"
JAIN: Metric = "jain"
PER_JOULE: Metric = "per-joule"
FAIRNESS: tuple[Metric, ...] = (SLOWEST, JAIN)
NAMED = (*LATENCIES, *FAIRNESS, PER_JOULE)
"""those that are judged only if they are named, because each test costs the others power"""
NEVER_SLICED = ("max", *FAIRNESS, PER_JOULE)
SHOWN = (THROUGHPUT, CPU_EFFICIENCY, *NAMED)
"""those of which there are curves and histories"""
EVERY = (*METRICS, *NAMED)

UNRECORDED = {
    THROUGHPUT: "no operation was counted",
    CPU_EFFICIENCY: "CPU time was not recorded",
    SETTLED: "deferred work was not written out between turns",
    PER_JOULE: "the machine did not report its power (RAPL in /sys/class/powercap, as root)",
}
"""metric -> why a cell has no value of it"""

Value = Callable[[Cell], float | None]


def throughput(cell: Cell) -> float | None:
    """Operations per second of wall time."""
    return cell.ops_per_second


def per_cpu_second(cell: Cell) -> float | None:
    """Operations per second of the cgroup's CPU time; None if it was not recorded."""
    return cell.ops / cell.own_cpu_seconds if cell.own_cpu_seconds else None


def per_joule(cell: Cell) -> float | None:
    """Operations per joule of the processors and their memory; None if it was not recorded.

    With what all of the machine's cores take: idle ones, and other processes.
    """
    return cell.ops_per_second / cell.watts if cell.watts else None


def turn_length(turn: Slice, metric: str) -> float:
    """The seconds by which a turn's operations are divided; 0 if the turn lacks that metric."""
    if metric == CPU_EFFICIENCY:
        return turn.cpu_seconds
    if metric == SETTLED:
        return turn.seconds + turn.settle_seconds if turn.settle_seconds else 0.0
    return turn.seconds


def settled(cell: Cell) -> float | None:
    """Operations per second of the turns and the settling after each; None if none settled.

    So deferred work counts as well, although it does not fall into a turn.
    """
    turns = [turn for turn in cell.slices or () if turn.seconds and turn_length(turn, SETTLED)]
    length = sum(turn_length(turn, SETTLED) for turn in turns)
    return sum(turn.ops for turn in turns) / length if length else None


def latency(metric: str, cell: Cell) -> float | None:
    """One of LATENCIES in seconds; None if `why_missing` has a reason."""
    nanoseconds = None if why_missing(cell, metric) else quantile(cell.latency, metric)
    return None if nanoseconds is None else nanoseconds / 1e9


def slowest_worker(cell: Cell) -> float | None:
    """Operations of the slowest worker over the workers' mean, 0 to 1; None if not known."""
    return None if why_missing(cell, SLOWEST) else min(_shares(cell))


def jain(cell: Cell) -> float | None:
    """Jain's index of the workers' operations: 1 if all did as much, 1/n if one did all.

    R. Jain, D.-M. Chiu, W. Hawe, A quantitative measure of fairness and discrimination for resource
    allocation in shared computer systems, DEC-TR-301 (1984). None if it is not known.
    """
    if why_missing(cell, JAIN):
        return None
    shares = _shares(cell)
    return len(shares) / sum(share**2 for share in shares)


def _operations(cell: Cell) -> list[int]:
    """The operations of each worker; empty if they were not recorded, or are all 0."""
    operations = [worker.ops for worker in cell.bench.workers] if cell.bench else []
    return operations if any(operations) else []


def _shares(cell: Cell) -> list[float]:
    """The operations of each worker over their mean."""
    done = _operations(cell)
    return [ops * len(done) / sum(done) for ops in done]


def why_missing(cell: Cell, metric: str) -> str:
    """Why a good cell has no value of a metric, as a clause; empty if it has one."""
    if cell.slices is not None and metric in NEVER_SLICED:
        return f"slices are too short for {metric} (`fscale ab --whole` measures repetitions)"
    if metric in UNRECORDED:
        return "" if VALUES[metric](cell) else UNRECORDED[metric]
    if metric in FAIRNESS:
        done = _operations(cell)
        if len(done) == 1:
            return "there is one worker only"
        return "" if done else "the operations of each worker were not recorded"
    if cell.slices is not None and cell.latency is not None and "errors" not in cell.latency:
        return "latencies were not recorded turn by turn"
    return why_none(cell.latency, metric)


FAIRNESS_VALUES: dict[str, Value] = {SLOWEST: slowest_worker, JAIN: jain}
LATENCY_VALUES: dict[str, Value] = {metric: partial(latency, metric) for metric in LATENCIES}
NAMED_VALUES = LATENCY_VALUES | FAIRNESS_VALUES
VALUES: dict[str, Value] = {
    THROUGHPUT: throughput,
    CPU_EFFICIENCY: per_cpu_second,
    SETTLED: settled,
    PER_JOULE: per_joule,
    **NAMED_VALUES,
}
"""metric -> its value in a good cell, None if it has none; times are in seconds"""
