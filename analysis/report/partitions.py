# SPDX-License-Identifier: GPL-2.0-only
"""The section that compares a medium cut into partitions with the same medium whole."""

from dataclasses import dataclass

from fscale.analysis.curves import Page, Panel
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.analysis.summary import Point, Ratio
from fscale.model.variant import partitions_in


@dataclass(frozen=True)
class PartitionedPoint:
    """One workload and file system at one core count, whole and partitioned."""

    page: str
    workload: str
    filesystem: str
    partitions: int
    whole: Point
    partitioned: Point

    @property
    def ratio(self) -> Ratio:
        """Partitioned over whole, with the interval that both spreads allow."""
        return Ratio(
            self.partitioned.median / self.whole.median,
            self.partitioned.spread.low / self.whole.spread.high,
            self.partitioned.spread.high / self.whole.spread.low,
        )


def rows(page: Page, panel: Panel) -> list[PartitionedPoint]:
    """The points of partitioned file systems that were also measured whole (FxMark, Figure 14)."""
    points = {(c.filesystem, c.side, p.key.cores): p for c in panel.curves for p in c.points}
    partitioned = []
    for (name, side, cores), point in points.items():
        base, count = partitions_in(name)
        whole = points.get((base, side, cores))
        if count > 1 and whole is not None:
            partitioned.append(PartitionedPoint(page.title, panel.name, base, count, whole, point))
    return partitioned


def _partitions(report: Report) -> str | None:
    table = [row for page in report.pages for panel in page.panels for row in rows(page, panel)]
    return render("sections/partitions.html.j2", rows=table, whose=report.whose) if table else None


PARTITIONS = Section("Partitioned against whole", "partitions", _partitions)
