# SPDX-License-Identifier: GPL-2.0-only
"""The table of figures as rows: for the report, figures.csv and figures.json."""

import csv
import io
import json
import re
from typing import Any

from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.metrics import FAIRNESS, LATENCIES
from fscale.analysis.summary import CPU_STATES, Point
from fscale.model.files import Folder

PointRow = dict[str, Any]


def plain(metric: str) -> str:
    """A metric as a part of a column's name: "p99.9" -> "p99_9"."""
    return re.sub(r"\W", "_", metric)


LATENCY_COLUMNS: dict[str, str] = {
    metric: f"latency_{plain(metric)}_seconds" for metric in LATENCIES
}
FAIRNESS_COLUMNS: dict[str, str] = {metric: plain(metric) for metric in FAIRNESS}
"""metric -> column"""


def rows(pages: list[Page]) -> list[PointRow]:
    """One row per point, in the report's order; all rows have the same keys, None if unknown.

    A point on several pages has one row. If there are several runs, `run` is the label.
    """
    unique = {
        (point.run, point.key.point): _row(panel, curve, point)
        for page in pages
        for panel in page.panels
        for curve in panel.curves
        for point in curve.points
    }
    return list(unique.values())


def _row(panel: Panel, curve: Curve, point: Point) -> PointRow:
    speedup = curve.speedup(point)
    cpu = point.cpu
    per_cpu = point.ops_per_cpu_second
    return {
        **({"run": point.run} if point.run else {}),
        "workload": panel.workload,
        "variant": panel.variant,
        "filesystem": curve.filesystem,
        "side": curve.side,
        "simulated": curve.simulated,
        "medium": point.key.medium,
        "mode": point.key.mode,
        "cores": point.key.cores,
        "workers": point.workers,
        "workers_per_cpu": point.key.workers_per_cpu,
        "placement": point.key.placement,
        "unit": point.unit,
        "repetitions": point.n,
        "disturbed": point.disturbed,
        "median_per_second": point.median,
        "low_per_second": point.spread.low,
        "high_per_second": point.spread.high,
        "spread": point.spread.kind,
        "mad_per_second": point.mad,
        "background_per_second": point.background,
        "speedup": speedup.value if speedup else None,
        "speedup_low": speedup.low if speedup else None,
        "speedup_high": speedup.high if speedup else None,
        "per_cpu_second": per_cpu,
        "cpu_seconds_each": 1 / per_cpu if per_cpu else None,
        **{f"cpu_{state}": cpu[state] if cpu else None for state in CPU_STATES},
        **{key: _median(point, m) for m, key in (LATENCY_COLUMNS | FAIRNESS_COLUMNS).items()},
    }


def _median(point: Point, metric: str) -> float | None:
    found = point.of(metric)
    return found[0] if found else None


def write(table: list[PointRow], folder: Folder) -> None:
    """Write `table` to figures.csv and figures.json in `folder`."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, fieldnames=list(table[0]) if table else ["workload"])
    writer.writeheader()
    writer.writerows({key: spreadsheet_safe(value) for key, value in row.items()} for row in table)
    folder.write("figures.csv", file.getvalue())
    folder.write("figures.json", json.dumps({"schema": 1, "figures": table}, indent=1) + "\n")


def spreadsheet_safe(value: object) -> object:
    """The value; text that a spreadsheet would read as a formula gets a leading quote."""
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@"))
    return f"'{value}" if formula else value
