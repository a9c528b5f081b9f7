# SPDX-License-Identifier: GPL-2.0-only
"""Writes the JSON of Google Benchmark, for its `compare.py` and other readers.

An entry is a repetition, as with `--benchmark_repetitions`; two or more are followed by `_mean`,
`_median`, `_stddev` and `_cv` of their times. `real_time` is the wall-clock time of an operation in
one worker, `cpu_time` the CPU time of the whole cell per operation, `items_per_second` the
throughput of all workers. The keys are those of src/json_reporter.cc in
https://github.com/google/benchmark. There a failed entry has times of zero, and readers use both
times of every entry; so cells without both times are not entries but listed in `left_out`, with the
reason.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import Any

from fscale.analysis.cells import in_order, options, simulated, workers
from fscale.analysis.formats.outcome import describe_cell
from fscale.analysis.reader import Results
from fscale.model.files import printable
from fscale.model.results import Cell, Run

_SCHEMA = 1  # json_schema_version of Google Benchmark 1.8 and later
_NANO = 1e9
_NO_CPU_TIME = "its CPU time was not recorded"


@dataclass(frozen=True)
class _Times:
    """Seconds per operation."""

    real: float
    cpu: float


def render(results: Results) -> str:
    """The whole run."""
    machine = results.run.machine
    context = {
        "date": results.run.started,
        "host_name": printable(machine.hostname),
        "executable": "fscale-bench",
        "num_cpus": len(machine.cpu_order),
        "caches": [],
        "load_avg": [],
        "json_schema_version": _SCHEMA,
        "fscale_run": printable(results.run.id),
        "kernel": printable(machine.kernel),
        "machine": printable(machine.kind),
        "imported": printable(results.run.imported or ""),
    }
    timed: dict[tuple[str, int], list[tuple[Cell, _Times]]] = {}
    left_out = [{"name": u.file, "message": printable(u.reason)} for u in results.unreadable]
    for cell in in_order(results.cells):
        name = _family(results.run, cell)
        if times := _times(cell):
            timed.setdefault((name, cell.key.cores), []).append((cell, times))
        else:
            why = _NO_CPU_TIME if cell.status == "ok" else describe_cell(cell)
            left_out.append({"name": f"{name}/cores:{cell.key.cores}", "message": why})
    if results.missing:
        why = f"{results.missing} planned cells left no result"
        left_out.append({"name": "", "message": why})
    data = {"context": context, "benchmarks": _benchmarks(timed), "left_out": left_out}
    return json.dumps(data, indent=1) + "\n"


def _family(run: Run, cell: Cell) -> str:
    key = cell.key
    parts = [key.workload, key.filesystem, key.medium, key.mode]
    parts += [option.replace("=", ":") for option in options(cell.key).split()]
    parts += [f"{name}:{value}" for name, value in key.crew.items()]
    parts += [f"seconds:{key.duration:g}"]
    parts += [f"side:{key.side}"] if key.side else []
    parts += [f"profile:{key.profile}"] if key.profile else []
    parts += ["simulated"] if simulated(run, cell) else []
    return "/".join(parts)


def _times(cell: Cell) -> _Times | None:
    """The times of a cell; None if it has no figure, or if its CPU time is not known."""
    if cell.status != "ok":
        return None
    threads = _threads(cell)
    real = threads / cell.ops_per_second
    if cell.simulation is not None:  # cycles of the cores that ran workers, without idle ones
        return _Times(real, real * (1 - cell.simulation.shares()["idle"]))
    return _Times(real, cell.own_cpu_seconds / cell.ops) if cell.own_cpu_seconds else None


def _threads(cell: Cell) -> int:
    return workers(cell) or cell.key.cores


def _benchmarks(
    timed: dict[tuple[str, int], list[tuple[Cell, _Times]]],
) -> list[dict[str, Any]]:
    families = list(dict.fromkeys(family for family, _ in timed))
    entries: list[dict[str, Any]] = []
    for (family, cores), repetitions in timed.items():
        instances = [count for name, count in timed if name == family]
        common = {
            "family_index": families.index(family),
            "per_family_instance_index": instances.index(cores),
            "run_name": f"{family}/cores:{cores}",
            "repetitions": len(repetitions),
            "threads": _threads(repetitions[0][0]),
        }
        entries += [
            _repetition(common, index, cell, times)
            for index, (cell, times) in enumerate(repetitions)
        ]
        if len(repetitions) > 1:
            entries += _aggregates(common, [times for _, times in repetitions])
    return entries


def _repetition(common: dict[str, Any], index: int, cell: Cell, times: _Times) -> dict[str, Any]:
    return {
        "name": common["run_name"],
        **common,
        "run_type": "iteration",
        "repetition_index": index,
        "iterations": round(cell.ops),
        "real_time": _NANO * times.real,
        "cpu_time": _NANO * times.cpu,
        "time_unit": "ns",
        "items_per_second": cell.ops_per_second,
        "label": describe_cell(cell),
        **({"disturbed": 1} if cell.disturbed is not None else {}),
    }


def _aggregates(common: dict[str, Any], times: list[_Times]) -> Iterable[dict[str, Any]]:
    for name, (function, unit, scale) in _AGGREGATES.items():
        yield {
            "name": f"{common['run_name']}_{name}",
            **common,
            "run_type": "aggregate",
            "aggregate_name": name,
            "aggregate_unit": unit,
            "iterations": len(times),
            "real_time": scale * function([one.real for one in times]),
            "cpu_time": scale * function([one.cpu for one in times]),
            "time_unit": "ns",
        }


def _variation(values: list[float]) -> float:
    """The coefficient of variation as a fraction, like in Google Benchmark."""
    return stdev(values) / mean(values)


_AGGREGATES: dict[str, tuple[Callable[[list[float]], float], str, float]] = {
    "mean": (mean, "time", _NANO),
    "median": (median, "time", _NANO),
    "stddev": (stdev, "time", _NANO),
    "cv": (_variation, "percentage", 1),
}
