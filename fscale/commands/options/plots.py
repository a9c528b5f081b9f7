# SPDX-License-Identifier: GPL-2.0-only
"""How the plots of a report are drawn as files: the options, and lengths with a unit."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from fscale.commands.options.kinds import number
from fscale.model.errors import FscaleError

if TYPE_CHECKING:
    from fscale.analysis.plotsettings import PlotSettings

INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
"""unit of a length -> inches; a pt is that of TeX"""
_LENGTH = re.compile(r"(\d+\.?\d*|\.\d+) ?([a-z]+)")


class Per(StrEnum):
    """What a figure shows, as in `fscale.analysis.plotsettings.Per`."""

    WORKLOAD = "workload"
    GROUP = "group"
    ALL = "all"


DEFAULT_WIDTHS = {Per.WORKLOAD: "3.33in", Per.GROUP: "7in", Per.ALL: "7in"}


@dataclass(frozen=True)
class PlotOptions:
    """Size, layout, font and style of the files."""

    plot_width: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="Width of a figure in in, cm, mm or pt; one of few workloads is narrower. "
            "Default: 7in, a page of USENIX; 3.33in, a column, if a figure shows a workload.",
        ),
    ] = None
    plot_height: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="Height of a row of curves. Default: 1.7in for text of 8 points.",
        ),
    ] = None
    plot_per: Annotated[
        Per,
        typer.Option(
            metavar="CONTENT",
            help="Content of a figure: `workload`, `group` (of workloads), or `all` in a grid.",
        ),
    ] = Per.GROUP
    plot_columns: Annotated[
        int | None,
        number(1, 20, "Workloads beside one another. Default: as many as fit, up to four."),
    ] = None
    plot_style: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STYLE",
            help="Style of matplotlib: a .mplstyle file, or a name such as ggplot. Repeatable; the "
            "last one wins.",
        ),
    ] = None
    font: Annotated[
        str | None,
        typer.Option(metavar="FAMILY", help="Font of the text, such as STIXGeneral."),
    ] = None
    font_size: Annotated[
        float | None,
        typer.Option(
            min=4, max=40, metavar="POINTS", help="Size of the text. Default: the style's, else 8."
        ),
    ] = None

    @property
    def settings(self) -> "PlotSettings":
        """These options, checked.

        Raises:
            FscaleError: one of them cannot be used.
        """
        from fscale.analysis.plotsettings import PlotSettings, read_style  # noqa: PLC0415 - imports matplotlib

        if self.plot_columns and self.plot_per is Per.WORKLOAD:
            raise FscaleError(
                "--plot-columns: not supported with --plot-per workload; leave it out"
            )
        return PlotSettings(
            inches(
                "--plot-width",
                DEFAULT_WIDTHS[self.plot_per] if self.plot_width is None else self.plot_width,
            ),
            None if self.plot_height is None else inches("--plot-height", self.plot_height),
            self.plot_per.value,
            self.plot_columns,
            read_style(self.plot_style or (), self.font, self.font_size),
        )


def inches(option: str, text: str) -> float:
    """Return a length with a unit in inches.

    Raises:
        FscaleError: `text` is no length.
    """
    length = _LENGTH.fullmatch(text.strip())
    if not length or length[2] not in INCHES:
        raise FscaleError(
            f"{option} {text}: give a number and one of the units {', '.join(INCHES)}, such as "
            "3.33in"
        )
    return float(length[1]) * INCHES[length[2]]
