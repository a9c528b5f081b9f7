# SPDX-License-Identifier: GPL-2.0-only
"""The sections that show plots: scaling curves and CPU time."""

from markupsafe import Markup

from analysis import figures, plots
from analysis.curves import Page
from analysis.report.render import render
from analysis.report.section import Report, Section
from analysis.style import CPU_COLOURS

Key = tuple[Markup, str]


def _curve_keys(report: Report, page: Page, prefix: str) -> list[Key]:
    curves = {c.name: c for panel in page.panels for c in panel.curves}
    keys = [
        (
            Markup(
                figures.curve_key(report.lines[c.filesystem], f"{prefix}-{i}", c.side, c.simulated)
            ),
            name,
        )
        for i, (name, c) in enumerate(curves.items())
    ]
    for i, (mark, name) in enumerate(plots.layout_keys(page)):
        keys.append((Markup(figures.key_svg(mark, f"{prefix}-mark{i}")), name))
    if len(page.cores) > 1:
        ideal = figures.key_svg(plots.ideal_key(), f"{prefix}-ideal")
        keys.append((Markup(ideal), "linear, from the fastest base"))
    return keys


def _cpu_keys(prefix: str) -> list[Key]:
    return [(Markup(figures.patch_key(state, f"{prefix}-{state}")), state) for state in CPU_COLOURS]


def _curves(report: Report) -> str | None:
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
    return render("sections/curves.html.j2", pages=pages, ideal=ideal)


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
