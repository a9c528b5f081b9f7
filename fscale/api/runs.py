# SPDX-License-Identifier: GPL-2.0-only
"""Loads runs: their tables as DataFrames, their curves, and what they found."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from fscale.analysis import plots
from fscale.analysis.curves import Page, Panel
from fscale.analysis.formats.tables import TABLES
from fscale.analysis.members import Member, NamedRun, open_named, refuse_many
from fscale.analysis.report import answer
from fscale.analysis.report.excerpt import excerpt
from fscale.analysis.report.section import Report
from fscale.analysis.style import RC, LineStyle, lines
from fscale.analysis.sweeps import sweeps
from fscale.analysis.tables.frame import make_frame
from fscale.model.catalogue import suggest
from fscale.model.errors import FscaleError
from fscale.model.words import plural

_SIZE = (4.8, 3.2)  # inches, of a figure of its own


def load(*directories: str | os.PathLike[str], labels: Sequence[str] | None = None) -> "Runs":
    """Load one results directory or several.

    `labels` name the runs in the order of the directories. Without them, a single run has the name
    of its directory, and several are named by what tells them apart: kernel, options, host, ...

    Raises:
        FscaleError: a directory is not a run, or is given twice; two runs contain the same cells or
            have the same label; or there is not one label for each directory.
    """
    names = [None] * len(directories) if labels is None else labels
    if len(names) != len(directories):
        raise FscaleError(
            f"{plural(len(names), 'label')} for {plural(len(directories), 'run')}; give each one"
        )
    named = zip(directories, names, strict=True)
    return Runs(open_named([NamedRun(Path(path), name) for path, name in named]))


class Runs:
    """One run or several in memory; `load` makes it.

    Each table is a DataFrame that is made at its first use. `attrs["units"]` has the units of its
    columns (no entry for text, counts and shares), `attrs["meanings"]` what they mean. The first
    column of all tables, `run`, tells runs apart. docs/reference/table-columns.md lists all
    columns.

    In Jupyter its value is shown as the first part of the report.
    """

    def __init__(self, members: tuple[Member, ...]) -> None:
        self._members = members
        self._report = Report(members, Path())

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row for each repetition that was not profiled, also if it failed; rates in 1/s."""
        return self._table("cells")

    @cached_property
    def profiled(self) -> pd.DataFrame:
        """A row for each profiling repetition, with the columns of `cells`; none of them counts."""
        return self._table("profiled")

    @cached_property
    def points(self) -> pd.DataFrame:
        """A row for each point: medians and spreads of the repetitions that count, speed-ups."""
        return make_frame(TABLES["points"].columns, self._report.figures)

    @cached_property
    def sweeps(self) -> pd.DataFrame:
        """A row for each point of a sweep and each axis in which it varies, by `value`."""
        return make_frame(TABLES["sweeps"].columns, self._report.swept)

    @cached_property
    def locks(self) -> pd.DataFrame:
        """A row for each object that a profiled point waits for, with its share of the time."""
        return self._table("locks")

    @cached_property
    def latency(self) -> pd.DataFrame:
        """A row for each repetition that counts and each recorded percentile; seconds."""
        return self._table("latency")

    @cached_property
    def control(self) -> pd.DataFrame:
        """A row for each control and core count: how far the machine itself scales."""
        return self._table("control")

    @cached_property
    def machine(self) -> pd.DataFrame:
        """A row for each run: when and how it was measured, and on what machine."""
        return self._table("machine")

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """A row for each point that `fscale predict` predicted; none of them was measured."""
        return self._table("predictions")

    def curve(
        self,
        workload: str,
        *,
        medium: str | None = None,
        mode: str | None = None,
        ax: Axes | None = None,
        linear: bool = True,
    ) -> Axes:
        """Draw throughput against cores as the report does, and return the axes.

        `workload`: name of a workload, or of a panel of the report ("DWAL block=4096") if it was
        measured with several options, or of a sweep ("DWAL on ext4 by block"), which has a curve
        for each value. `medium` and `mode` are needed if there are several. `ax`: axes to draw on;
        by default those of a new figure of pyplot. `linear`: draw linear scaling.

        Raises:
            FscaleError: it was not measured, or the names leave several panels to choose from.
        """
        refuse_many(self._members)
        page, panel, looks = self._panel(workload, medium, mode)
        # Not below: the first figure sets up pyplot's backend, which the end of a context undoes.
        place = ax or plt.figure(figsize=_SIZE, layout="constrained")
        with mpl.rc_context(RC):
            drawn = place if isinstance(place, Axes) else place.add_subplot()
            plots.draw_curves(drawn, panel, looks, linear)
            drawn.set_title(panel.name)
            alone = page.alone(panel)
            drawn.legend(*plots.legend(alone, looks, linear))
        return drawn

    def _panel(
        self, workload: str, medium: str | None, mode: str | None
    ) -> tuple[Page, Panel, dict[str, LineStyle]]:
        pages = [
            page
            for page in self._report.pages
            if medium in (None, page.medium) and mode in (None, page.mode)
        ]
        if not pages:
            titles = "; ".join(page.title for page in self._report.pages) or "none"
            raise FscaleError(f"no curves have medium={medium}, mode={mode}; there are: {titles}")
        drawable = [(page, panel, self._report.lines) for page in pages for panel in page.panels]
        drawable += [
            (sweep.page, sweep.panel, lines(dict.fromkeys(sweep.names))) for sweep in sweeps(pages)
        ]
        chosen = [one for one in drawable if one[1].name == workload]
        chosen = chosen or [one for one in drawable if one[1].workload == workload]
        if not chosen:
            known = dict.fromkeys(panel.name for _, panel, _ in drawable)
            raise FscaleError(f"there are no curves of {workload}{suggest(workload, known)}")
        if len(chosen) > 1:
            several = "; ".join(f"{panel.name}, {page.title}" for page, panel, _ in chosen)
            raise FscaleError(
                f"{workload} has several panels ({several}); give medium, mode or a panel's name"
            )
        return chosen[0]

    def _table(self, name: str) -> pd.DataFrame:
        table = TABLES[name]
        return make_frame(table.columns, table.rows(self._members))

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(member.name for member in self._members))
        found = " ".join(answer.sentence(page) for page in self._report.pages)
        return f"<fscale.Runs of {names}: {found or 'no figures.'}>"

    def _repr_html_(self) -> str | None:
        html = excerpt(self._report)
        return None if html is None else str(html)
