# SPDX-License-Identifier: GPL-2.0-only
"""OpenMetrics text (https://prometheus.io/docs/specs/om/open_metrics_spec/).

Every sample has the start time of its cell, so that `promtool tsdb create-blocks-from openmetrics`
imports runs of any age at the right time. A repetition without a value has a status and no other
sample.
"""

from collections.abc import Iterator

from prometheus_client.metrics_core import (
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from fscale.analysis.cells import (
    cpu_seconds,
    cpu_times,
    in_order,
    moment,
    options,
    simulated,
)
from fscale.analysis.metrics import FAIRNESS_VALUES, LATENCY_VALUES
from fscale.analysis.reader import Results
from fscale.analysis.summary import CPU_STATES
from fscale.model.files import printable
from fscale.model.results import Cell, Run

_STATES = ("ok", "invalid", "error", "skipped", "interrupted")
_POINT = (
    *("run", "host", "workload", "options", "filesystem", "medium", "mode", "cores", "duration"),
    *("workers_per_cpu", "placement", "cpus_kept_free"),
    *("side", "profile", "repetition"),
)
_DOUBT = ("simulated", "disturbed", "unit")


def render(results: Results) -> str:
    """The whole run."""
    text: bytes = generate_latest(_Collector(results))  # type: ignore[no-untyped-call]
    return text.decode()


class _Collector(Collector):
    """Gives the library the families of samples."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield from _of_run(self._results)
        yield _status(self._results)
        yield from _figures(self._results)


def _of_run(results: Results) -> Iterator[Metric]:
    run = results.run
    named = {"run": printable(run.id), "host": printable(run.machine.hostname)}
    began = _stamp(run.started)
    info = InfoMetricFamily("fscale_run", "A run and the machine that it ran on.")
    about = {
        "kernel": run.machine.kernel,
        "machine": run.machine.kind,
        "cpu_model": run.machine.cpu_model,
        "cpus": str(len(run.machine.cpu_order)),
        "state": run.state,
        "revision": run.revision or "",
        "imported": run.imported or "",
    }
    info.add_metric([], named | {k: printable(v) for k, v in about.items()}, began)
    yield info
    for name, value, help_text in (
        ("planned", run.planned_cells, "Planned cells of the run."),
        ("missing", results.missing, "Planned cells that left no file."),
        ("unreadable", len(results.unreadable), "Files of cells that cannot be used."),
    ):
        family = GaugeMetricFamily(f"fscale_run_cells_{name}", help_text, labels=tuple(named))
        family.add_metric(list(named.values()), value, began)
        yield family


def _status(results: Results) -> Metric:
    family = StateSetMetricFamily("fscale_cell_status", "How a repetition ended.", labels=_POINT)
    for cell in in_order(results.cells):
        states = {state: cell.status == state for state in _STATES}
        family.add_metric(_labels(results.run, cell), states, _stamp(cell.started))
    return family


def _figures(results: Results) -> Iterator[Metric]:
    throughput = GaugeMetricFamily(
        "fscale_throughput_per_second",
        "Operations per second of a repetition, in its unit; for a simulated one, those of its "
        "median window. Profiling repetitions have none.",
        labels=[*_POINT, *_DOUBT],
    )
    window = GaugeMetricFamily(
        "fscale_window", "Sum of the timed windows.", labels=_POINT, unit="seconds"
    )
    own = GaugeMetricFamily(
        "fscale_own_cpu", "CPU time of the cell itself.", labels=_POINT, unit="seconds"
    )
    power = GaugeMetricFamily(
        "fscale_power", "Power of processors and memory.", labels=_POINT, unit="watts"
    )
    cpu = GaugeMetricFamily(
        "fscale_cpu",
        "Time of the CPUs under test by state; irq includes softirq.",
        labels=[*_POINT, "state"],
        unit="seconds",
    )
    latency = GaugeMetricFamily(
        "fscale_latency",
        "Latency of an operation; p50, p99, p99.9 or max, as far as it is known.",
        labels=[*_POINT, "metric"],
        unit="seconds",
    )
    fairness = GaugeMetricFamily(
        "fscale_fairness",
        "slowest-worker: operations of the slowest worker over the mean; jain: Jain's index.",
        labels=[*_POINT, "metric"],
    )
    for cell in in_order(results.scored):
        labels, began = _labels(results.run, cell), _stamp(cell.started)
        throughput.add_metric([*labels, *_doubt(results.run, cell)], cell.ops_per_second, began)
        window.add_metric(labels, cell.seconds, began)
        if cell.own_cpu_seconds is not None:
            own.add_metric(labels, cell.own_cpu_seconds, began)
        if cell.watts is not None:
            power.add_metric(labels, cell.watts, began)
        if used := cpu_times(cell):
            for state in CPU_STATES:
                cpu.add_metric([*labels, state], cpu_seconds(used, state), began)
        for family, values in ((latency, LATENCY_VALUES), (fairness, FAIRNESS_VALUES)):
            for metric, value_of in values.items():
                if (value := value_of(cell)) is not None:
                    family.add_metric([*labels, metric], value, began)
    yield from (throughput, window, own, power, cpu, latency, fairness)


def _labels(run: Run, cell: Cell) -> list[str]:
    key = cell.key
    return [
        *(printable(run.id), printable(run.machine.hostname), key.workload, options(key)),
        *(key.filesystem, key.medium, key.mode, str(key.cores), f"{key.duration:g}"),
        *(str(key.workers_per_cpu), key.placement, str(len(run.machine.kept_free))),
        *(key.side or "", key.profile or "", str(key.repetition)),
    ]


def _doubt(run: Run, cell: Cell) -> list[str]:
    return [
        str(simulated(run, cell)).lower(),
        "" if run.imported else str(cell.disturbed is not None).lower(),
        cell.unit,
    ]


def _stamp(text: str) -> float | None:
    """Seconds since 1970."""
    time = moment(text)
    return None if time is None else time.timestamp()
