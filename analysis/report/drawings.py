# SPDX-License-Identifier: GPL-2.0-only
"""The sections that show plots: scaling curves and CPU time."""

from dataclasses import dataclass

from markupsafe import Markup

from fscale.analysis import figures
from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.plots import BEYOND
from fscale.analysis.report.diagnosis import Described, of_curve
from fscale.analysis.report.looks import run_mark
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.analysis.style import CPU_COLOURS, LineStyle

IDEAL = "linear, from the fastest base"
GIVEN = "linear on this machine"


@dataclass(frozen=True)
class Key:
    """A sample of a legend; `kind` is "curve" or "run" if it can be hidden, or "ideal"."""

    sample: Markup
    name: str
    kind: str = ""


@dataclass(frozen=True)
class Keys:
    """A row of a legend."""

    title: str
    samples: list[Key]


def _curve_keys(report: Report, page: Page, prefix: str) -> list[Keys]:
    curves = {c.name: c for panel in page.panels for c in panel.curves}
    marks = _mark_keys(page, prefix)
    if report.several:
        rows = _run_keys(report, list(curves.values()), prefix)
        return [*rows, Keys("Marks", marks)] if marks else rows
    keys = [
        _key(report.lines[c.series], f"{prefix}-{i}", name, "curve", c)
        for i, (name, c) in enumerate(curves.items())
    ]
    return [Keys("Legend", keys + marks)]


def _key(line: LineStyle, prefix: str, name: str, kind: str, curve: Curve | None = None) -> Key:
    side, simulated = (curve.side, curve.simulated) if curve else (None, False)
    return Key(Markup(figures.curve_key(line, prefix, side, simulated)), name, kind)


def _mark_keys(page: Page, prefix: str) -> list[Key]:
    keys = [
        Key(Markup(sample), name) for sample, name in figures.layout_keys(page, f"{prefix}-mark")
    ]
    if page.predicted:
        keys.append(Key(Markup(figures.predicted_key(f"{prefix}-predicted")), BEYOND))
    if len(page.cores) > 1:
        keys.append(Key(Markup(figures.ideal_key(f"{prefix}-ideal")), IDEAL, "ideal"))
    if any(panel.given for panel in page.panels):
        keys.append(Key(Markup(figures.given_key(f"{prefix}-given")), GIVEN, "ideal"))
    return keys


def _run_keys(report: Report, curves: list[Curve], prefix: str) -> list[Keys]:
    """A row of runs, and one of file systems if colours tell file systems apart."""
    shown = {c.run: c for c in curves}
    runs = []
    for i, member in enumerate(report.members):
        if curve := shown.get(member.label):
            line = report.lines[curve.series] if report.by_run else run_mark(i)
            runs.append(_key(line, f"{prefix}-run{i}", str(curve.run), "run", curve))
    colours = {c.filesystem: report.lines[c.series].colour for c in curves}
    filesystems = [
        _key(LineStyle(colour, "", "-"), f"{prefix}-{i}", name, "curve")
        for i, (name, colour) in enumerate(colours.items())
    ]
    return [Keys("Runs", runs), *([] if report.by_run else [Keys("File systems", filesystems)])]


def _cpu_keys(prefix: str) -> list[Key]:
    return [
        Key(Markup(figures.patch_key(state, f"{prefix}-{state}")), state) for state in CPU_COLOURS
    ]


def _curves(report: Report) -> str | None:
    shown: set[str] = set()

    def beside(panel: Panel) -> list[list[Described]]:
        """The diagnoses of a panel's curves; a curve on several pages has its own on the first."""
        found = [of_curve(report, curve) for curve in panel.curves] if report.diagnosed else []
        new = [own for own in found if own and own[0].place not in shown]
        shown.update(own[0].place for own in new)
        return new

    pages = [
        (
            page,
            _curve_keys(report, page, f"key{number}"),
            [
                (
                    group.title,
                    [
                        (
                            panel,
                            anchor := report.anchor(page, panel),
                            Markup(figures.curve_svg(panel, report.lines, f"{anchor}-plot")),
                            beside(panel),
                        )
                        for panel in group.panels
                    ],
                )
                for group in page.groups
            ],
        )
        for number, page in enumerate(report.pages)
    ]
    if not pages:
        return None
    ideal = any(len(page.cores) > 1 for page in report.pages)
    given = any(panel.given for page in report.pages for panel in page.panels)
    return render(
        "sections/curves.html.j2",
        pages=pages,
        ideal=ideal,
        given=given,
        predicted=dict.fromkeys(s for kept in report.predicted.values() for s in kept.sentences),
    )


def _cpu(report: Report) -> str | None:
    pages = []
    for number, page in enumerate(report.pages):
        drawn = [
            (panel, figures.cpu_svg(panel, f"cpu-{report.anchor(page, panel)}"))
            for panel in page.panels
        ]
        plotted = [(panel, Markup(svg)) for panel, svg in drawn if svg is not None]
        if plotted:
            pages.append((page, _cpu_keys(f"cpukey{number}"), plotted))
    return render("sections/cpu.html.j2", pages=pages) if pages else None


CURVES = Section("Throughput against cores", "curves", _curves)
CPU = Section("CPU time", "cpu", _cpu)
