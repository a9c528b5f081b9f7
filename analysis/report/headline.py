# SPDX-License-Identifier: GPL-2.0-only
"""The summary section: the limits of the run, the answer, and what was run."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fscale.analysis.curves import Panel
from fscale.analysis.reader import Results
from fscale.analysis.report import answer, controls
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.analysis.summary import QUARTILES_FROM
from fscale.analysis.windows import without_commit
from fscale.model import crew
from fscale.model.results import Run


def seconds(results: Results) -> float | None:
    """The duration of the run; None if it was not recorded."""
    run = results.run
    if run.finished is not None:
        finished, started = map(datetime.fromisoformat, (run.finished, run.started))
        took = (finished.replace(tzinfo=UTC) - started.replace(tzinfo=UTC)).total_seconds()
        if took >= 0:  # else the clock was set back before the run was resumed
            return took
    each = [c.wall_seconds for c in results.cells if c.wall_seconds is not None]
    return sum(each) if each else None


def counted(results: Results) -> dict[str, Any]:
    """The number of cells of a run by how they ended."""
    return {
        "planned": results.run.planned_cells,
        "scored": len(results.scored),
        "disturbed": sum(c.disturbed is not None for c in results.scored),
        "statuses": Counter(c.status for c in results.cells),
        "profiled": sum(c.key.profile is not None for c in results.cells),
        "unreadable": len(results.unreadable),
        "missing": results.missing,
        "controls": len(results.controls),
        "whatifs": len(results.whatifs),
    }


def _of_run(run: Run, name: str) -> list[str]:
    sentences = []
    if run.machine.simulated:
        sentences.append(
            f"All figures {name} are simulated, not measured. Counts per operation can be compared "
            "between builds. Curves show where cores contend, but rise higher than on the "
            "machines that they were compared with (docs/design/simulator-evidence.md)."
        )
    if run.imported:
        subject = "This run was" if name == "here" else f"The run {name} was"
        sentences.append(
            f"{subject} imported from {run.imported}. Its files do not record the load of other "
            "processes, or the machine's memory and settings, so the report cannot show them."
        )
    where = "" if name == "here" else f" ({name.removeprefix('of ')})"
    sentences += [f"{text[0].upper()}{text[1:]}{where}." for text in crew.sentences(run)]
    return sentences


def _commits(without: Mapping[str, float], label: str | None) -> str:
    intervals = ", ".join(f"{name} (every {every:g} s)" for name, every in without.items())
    where = f" of {label}" if label else ""
    return (
        f"No window{where} is long enough to be sure to include a commit of {intervals}; the "
        "windows of the suite scaling are."
    )


def _heat(report: Report) -> list[str]:
    hot = sum(bool(cell.thermal_throttled) for point in report.points for cell in point.cells)
    if not hot:
        return []
    return [
        f"CPUs under test were throttled for heat during {hot} cells: cool the machine, or lower "
        "its frequency, and measure again."
    ]


def _load(report: Report) -> list[str]:
    if not answer.mostly_disturbed(report):
        return []
    cells = [cell for point in report.points for cell in point.cells]
    disturbed = sum(cell.disturbed is not None for cell in cells)
    return [
        f"Other processes disturbed {disturbed / len(cells):.0%} of the repetitions ({disturbed} "
        f"of {len(cells)}): figures are too low by an unknown amount, and speed-ups are not "
        "reliable. Measure again on an idle machine (--wait waits for one)."
    ]


def limits(report: Report) -> list[str]:
    """The limits of the run, or of each of several, one sentence each."""
    runs = {str(m.run): m.results.run for m in report.members}
    sentences = _load(report)
    sentences += [
        limit
        for label, run in runs.items()
        for limit in _of_run(run, f"of {label}" if report.several else "here")
    ]
    sentences += [
        limit
        for label, control in report.controls.items()
        for limit in controls.limits(control, f" of {label}" if label else "")
    ]
    sentences += [
        _commits(without_commit(member.results.run, member.scored), member.label)
        for member in report.members
        if without_commit(member.results.run, member.scored)
    ]
    sentences += _heat(report)
    counts = {p.n for p in report.points}
    simulated = all(run.machine.simulated for run in runs.values())
    again = "--seeds 3" if simulated else "--repetitions 3"
    if counts == {1}:
        sentences.append(
            "Every point was measured once. There is no spread, so a small difference "
            f"may be chance; measure again with {again} or more."
        )
    elif 1 in counts:
        few = sum(p.n == 1 for p in report.points)
        sentences.append(
            f"{few} of {len(report.points)} points were measured once and show no spread."
        )
    if counts and 1 < max(counts) < QUARTILES_FROM:
        sentences.append(
            "With fewer than five repetitions the spread is the smallest and largest value, "
            "not a confidence interval."
        )
    for page in report.pages:
        if len(page.cores) == 1:
            sentences.append(
                f"{page.title}: only {page.cores[0]} core{'s' * (page.cores[0] > 1)} measured, "
                "so there is no speed-up, and the run shows nothing about scaling."
            )
        else:
            without = [w for panel in page.panels for w in _without_speedup(panel)]
            if without:
                sentences.append(
                    f"{page.title}: no speed-up for {', '.join(without)}, because the base (one "
                    "core; two with a background writer) or all higher core counts have no figure."
                )
    return sentences


def _without_speedup(panel: Panel) -> list[str]:
    without = [c.name for c in panel.curves if c.top_speedup is None]
    if len(without) == len(panel.curves):
        return [panel.name]
    return [f"{panel.name} on {name}" for name in without]


def _build(report: Report) -> str:
    results = report.results
    return render(
        "sections/summary.html.j2",
        run=results.run,
        seconds=seconds(results),
        counted=counted(results),
        answers=answer.table(report, limits(report)),
    )


SECTION = Section(answer.SECTION.title, answer.SECTION.anchor, _build)
