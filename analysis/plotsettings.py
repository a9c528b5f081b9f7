# SPDX-License-Identifier: GPL-2.0-only
"""Settings of the plots that are files: size, layout, fonts and matplotlib styles."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib import style as library

from fscale.analysis import fonts, textfit
from fscale.analysis.style import FIXED, RC, is_dark, sizes
from fscale.model.catalogue import nearest
from fscale.model.errors import FscaleError

Per = Literal["workload", "group", "all"]
TEXT_WIDTH = 7.0  # inches, of a USENIX page
MOST_INCHES = 50.0
MOST_COLUMNS = 4  # if the user sets none
PANEL = 7.0  # ems that the axes of a panel need at least
AXIS_LABELS = 6.5  # ems that stand to the left of a panel's axes
HEIGHT = 15.3  # ems of a row of curves, if the user sets none: 1.7 inches at 8 points
LOWEST = 9.0  # ems that a row of curves needs at least, half of them for its axes


@dataclass(frozen=True)
class PlotSettings:
    """How the files of a report's plots are drawn. Lengths are in inches.

    `rc`: matplotlib's settings, from `read_style`.

    Raises:
        FscaleError: the plots would be larger than any paper, or too small for their text.
    """

    width: float = TEXT_WIDTH
    """of a figure; one of few panels is narrower, so that the panels of all have one size"""
    height: float | None = None
    """of a row of curves; None: HEIGHT"""
    per: Per = "group"
    """what a figure shows"""
    columns: int | None = None
    """panels beside one another; None: as many as fit, up to MOST_COLUMNS"""
    rc: Mapping[Any, Any] = field(default_factory=lambda: RC)

    def __post_init__(self) -> None:
        with mpl.rc_context(dict(self.rc)):
            em = textfit.em(textfit.TICK)
            _check_length("--plot-width", self.width, (PANEL + AXIS_LABELS) * em, em)
            if self.height is not None:
                _check_length("--plot-height", self.height, LOWEST * em, em)
            room = self.room(AXIS_LABELS * em)
        if self.columns and self.columns > room:
            raise FscaleError(
                f"--plot-columns {self.columns}: text of {72 * em:.3g} points leaves room for "
                f"{room} in {self.width:.3g}in; give fewer columns, a larger --plot-width or a "
                "smaller --font-size"
            )

    def room(self, beside: float) -> int:
        """How many panels fit beside one another, with text of `beside` inches left of each.

        matplotlib's settings must be those of `rc`.
        """
        return max(1, int(self.width / (PANEL * textfit.em(textfit.TICK) + beside)))


def _check_length(option: str, inches: float, least: float, em: float) -> None:
    if not least <= inches <= MOST_INCHES:
        raise FscaleError(
            f"{option} {inches:.6g}in: text of {72 * em:.3g} points needs at least {least:.3g}in, "
            f"and paper has at most {MOST_INCHES:g}in; give a length between these"
        )


def read_style(
    styles: Sequence[str] = (), font: str | None = None, size: float | None = None
) -> dict[Any, Any]:
    """The settings of plots: this project's, then those of styles in their order, then the font's.

    Args:
        styles: each a file, or the name of a style of matplotlib.
        font: a font family.
        size: the size of text in points.

    Raises:
        FscaleError: a style or a font cannot be used.
    """
    rc, source = dict(RC), ""
    for name in styles:
        settings = _read(name)
        rc |= settings
        for axis in ("xtick", "ytick"):
            if f"{axis}.color" in settings:  # which labels have, too, unless the style says more
                rc[f"{axis}.labelcolor"] = settings.get(f"{axis}.labelcolor", "inherit")
        for ground in ("figure.facecolor", "axes.facecolor"):
            if rc[ground] != "none" and is_dark(rc[ground]):
                raise FscaleError(
                    f"--plot-style {name}: its {ground} is too dark for the colours of file "
                    "systems, which are made for paper; give a style with a light one"
                )
        source = f"--plot-style {name}" if "font.family" in settings else source
    rc |= {} if size is None else sizes(size)
    families = rc["font.family"] or [""]
    if font is not None:
        families, source = [font], f"--font {font}"
    if source:
        with mpl.rc_context(rc):
            rc["font.family"] = fonts.installed(families, source)
    return rc | FIXED


def _read(name: str) -> dict[Any, Any]:
    """The settings of a style."""
    if name in library.library:
        return dict(library.library[name])
    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
        keys = [line.partition("#")[0].partition(":")[0].strip() for line in lines]
        if unknown := next((key for key in keys if key and key not in mpl.rcParams), None):
            raise FscaleError(
                f"--plot-style {name}: matplotlib has no setting {unknown}"
                f"{_meant(unknown, mpl.rcParams)}"
            )
        return dict(mpl.rc_params_from_file(name, fail_on_error=True, use_default_template=False))
    except OSError as error:
        raise FscaleError(
            f"--plot-style {name} is no style of matplotlib, and no file that can be read "
            f"({error.strerror}){_meant(name, library.available)}"
        ) from None
    except ValueError as error:
        raise FscaleError(f"--plot-style {name}: {' '.join(str(error).split())}") from None


def _meant(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f"; did you mean {' or '.join(near)}?" if near else ""
