# SPDX-License-Identifier: GPL-2.0-only
"""The headline: what was run and what came out, in words."""

from collections import Counter, defaultdict
from datetime import UTC, datetime

from analysis.curves import Page, Panel
from analysis.findings import CLEAR_FROM, SCALES_FROM, SUPERLINEAR_FROM, Finding, Verdict, findings
from analysis.report.render import render
from analysis.report.section import Report, Section
from analysis.summary import QUARTILES_FROM


def _seconds(report: Report) -> float | None:
    """How long it took; None where that was not recorded."""
    run = report.results.run
    if run.finished is None:
        each = [c.wall_seconds for c in report.results.cells if c.wall_seconds is not None]
        return sum(each) if each else None
    finished, started = map(datetime.fromisoformat, (run.finished, run.started))
    return (finished.replace(tzinfo=UTC) - started.replace(tzinfo=UTC)).total_seconds()


def _limits(report: Report) -> list[str]:
    """What this run cannot say, and why."""
    said = []
    if report.results.run.machine.kind == "simulated":
        said.append(
            "Every figure here is simulated, none is measured: trust the shapes of curves and the "
            "counts an operation, within what docs/simulator.md says of the model, and no rate."
        )
    if imported := report.results.run.imported:
        said.append(
            f"Made of {imported}: the log does not hold others' load, latencies, when a cell ran, "
            "memory or settings of the machine, so nothing can be said of them."
        )
    counts = {p.n for p in report.points}
    again = "--seeds 3" if report.results.run.machine.kind == "simulated" else "--repetitions 3"
    if counts == {1}:
        said.append(
            "Every point was measured once. There is no spread, so a small difference "
            f"may be chance; measure again with {again} or more."
        )
    elif 1 in counts:
        few = sum(p.n == 1 for p in report.points)
        said.append(
            f"{few} of {len(report.points)} points were measured once: they show no spread."
        )
    if counts and 1 < max(counts) < QUARTILES_FROM:
        said.append(
            "With fewer than five repetitions the spread is the smallest and largest value, "
            "not a confidence interval."
        )
    for page in report.pages:
        if len(page.cores) == 1:
            said.append(
                f"{page.title}: only {page.cores[0]} core{'s' * (page.cores[0] > 1)} measured, "
                "so there is no speed-up and nothing about scaling can be said."
            )
        else:
            without = [w for panel in page.panels for w in _without_speedup(panel)]
            if without:
                said.append(
                    f"{page.title}: no speed-up for {', '.join(without)}, because the base "
                    "(one core; two with a writer beside) or a higher core count has no figure."
                )
    return said


def _without_speedup(panel: Panel) -> list[str]:
    without = [c.name for c in panel.curves if c.top_speedup is None]
    if len(without) == len(panel.curves):
        return [panel.name]
    return [f"{panel.name} on {name}" for name in without]


def _by_panel(found: list[Finding], worst_first: bool) -> list[tuple[str, list[Finding]]]:
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        groups[finding.panel.name].append(finding)
    listed = list(groups.items())
    if worst_first:
        listed.sort(key=lambda item: min(f.ratio.value / f.curve.linear for f in item[1]))
    return listed


def _page(report: Report, page: Page) -> dict[str, object]:
    found = findings(page)
    verdicts = [
        (verdict, _by_panel([f for f in found if f.verdict is verdict], verdict is Verdict.FALLS))
        for verdict in (
            Verdict.FALLS,
            Verdict.FLAT,
            Verdict.PARTLY,
            Verdict.SUPERLINEAR,
            Verdict.SCALES,
        )
    ]
    return {
        "page": page,
        "found": found,
        "verdicts": [(v, panels) for v, panels in verdicts if panels],
        "counts": Counter(f.verdict for f in found),
        "anchors": {p.name: report.anchor(page, p) for p in page.panels},
    }


def _build(report: Report) -> str:
    results = report.results
    statuses = Counter(c.status for c in results.cells)
    return render(
        "sections/summary.html.j2",
        run=results.run,
        seconds=_seconds(report),
        scored=len(results.scored),
        profiled=sum(c.key.profile is not None for c in results.cells),
        statuses=statuses,
        unreadable=len(results.unreadable),
        missing=results.missing,
        disturbed=sum(c.disturbed is not None for c in results.scored),
        limits=_limits(report),
        pages=[_page(report, page) for page in report.pages],
        Verdict=Verdict,
        scales_from=SCALES_FROM,
        clear_from=CLEAR_FROM,
        superlinear_from=SUPERLINEAR_FROM,
    )


SECTION = Section("Summary", "summary", _build)
