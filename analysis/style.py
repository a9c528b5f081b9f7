# SPDX-License-Identifier: GPL-2.0-only
"""The style of plots: the Okabe-Ito palette (safe for colour-blind readers), markers, fonts.

A colour has a value for white paper, which the PDF and SVG files use, and one for a dark screen. In
the report a CSS variable with both values replaces the first one (analysis/svg.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, cycle
from typing import Any, Literal

from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb

from fscale.model.config import ColourName

FONT_SIZE = 8  # points; USENIX captions are 9, text is 10

Dashes = Literal["-", "--", ":", "-."] | tuple[int, tuple[int, int]]


@dataclass(frozen=True)
class Colour:
    """A colour on white paper and on a dark screen."""

    light: str
    dark: str


@dataclass(frozen=True)
class LineStyle:
    """How one curve is drawn."""

    colour: str
    marker: str
    dashes: Dashes


def dashes(line: LineStyle, side: str | None, simulated: bool) -> Dashes:
    """The dashes of a line; simulated lines never look like measured ones."""
    if simulated:
        return ":" if side == "B" else "-."
    return "--" if side == "B" else line.dashes


INK = Colour("#1b1b1b", "#e9eaec")
MUTED = Colour("#595f66", "#a9b0b8")
GRID = Colour("#dfe2e5", "#363b42")
PAPER = Colour("#ffffff", "#14171a")

SERIES: dict[ColourName, Colour] = {
    "black": Colour("#010101", "#f5f5f5"),  # matplotlib leaves pure black out of an SVG
    "blue": Colour("#0072b2", "#3f9fe0"),
    "vermillion": Colour("#d55e00", "#ee7733"),
    "green": Colour("#009e73", "#22b98c"),
    "purple": Colour("#cc79a7", "#dd93bd"),
    "orange": Colour("#e69f00", "#f0b429"),
    "sky blue": Colour("#56b4e9", "#a3d8f7"),
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Dashes, ...] = ("-", "--", ":")
LONG: Dashes = (0, (8, 2))
PREDICTED: Dashes = (0, (3, 3))
"""of no other line, and always with a band"""
RUN_DASHES: tuple[Dashes, ...] = ("-", "--", LONG)  # a dotted line beside them is linear scaling

# These differ by one digit from the palette, because each colour must name a single variable.
CPU_COLOURS = {
    "user": Colour("#56b4e8", "#56b4e8"),
    "system": Colour("#d55e01", "#d55e01"),
    "iowait": Colour("#f0e442", "#f0e442"),
    "irq": Colour("#cc79a8", "#cc79a8"),
    "steal": Colour("#020202", "#ffffff"),
    "idle": Colour("#d3d7db", "#4a5058"),
}


def variables() -> dict[str, Colour]:
    """Every colour by the name of its CSS variable."""
    named = {"ink": INK, "muted": MUTED, "grid": GRID, "paper": PAPER}
    named |= {f"series-{i}": colour for i, colour in enumerate(SERIES.values())}
    return named | {f"cpu-{state}": colour for state, colour in CPU_COLOURS.items()}


def lines(wanted: Mapping[str, str | None]) -> dict[str, LineStyle]:
    """Colour, marker and dashes for each file system of a report, unique for up to 21.

    `wanted`: the colour in the file system's TOML file, so that it is the same in all reports. A
    file system without a colour, or with one that is taken, gets the next free one.
    """
    colours = list(SERIES)
    slots: dict[str, int] = {}
    for name, colour in wanted.items():
        if colour in SERIES and colours.index(colour) not in slots.values():
            slots[name] = colours.index(colour)
    every = range(len(SERIES) * len(DASHES))
    free = chain((i for i in every if i not in slots.values()), cycle(every))
    for name in wanted:
        if name not in slots:
            slots[name] = next(free)
    count = len(SERIES)
    return {
        name: LineStyle(SERIES[colours[i % count]].light, MARKERS[i % count], DASHES[i // count])
        for name, i in slots.items()
    }


def speedup_colours(share: float) -> tuple[str, str]:
    """Background and text colour of a matrix cell.

    `share` is log(speed-up) / log(linear speed-up): 1 is linear, 0 is no gain, negative is a
    loss; beyond +-1 the colour stays. Red to blue, light in the middle.
    """
    scale = colormaps["RdBu"]
    colour = to_hex(scale(0.5 + 0.32 * max(-1.0, min(1.0, share))))
    return colour, "#ffffff" if is_dark(colour) else "#000000"


def is_dark(colour: str) -> bool:
    """Whether white has more contrast to a colour than black."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] <= 0.179


def sizes(points: float) -> dict[Any, Any]:
    """The settings of all sizes of text, for a font of `points`."""
    kinds = ("axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
    return {
        "font.size": points,
        "axes.titlesize": points + 1,
        **dict.fromkeys(kinds, points),
    }


FIXED: dict[Any, Any] = {
    "text.parse_math": False,  # a $ in a name is a $
    "text.usetex": False,  # and a \ is a \
    "lines.marker": "none",  # markers tell file systems apart, and hollow ones are disturbed
    "lines.markerfacecolor": "auto",
    "markers.fillstyle": "full",
    "savefig.bbox": None,  # a figure is as wide as it was asked for
    "pdf.fonttype": 42,  # USENIX and ACM refuse Type 3 fonts
    "pdf.use14corefonts": False,  # and fonts that are not embedded
    "svg.fonttype": "none",
    "svg.hashsalt": "fscale",
}
"""settings that no style changes"""

RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    **sizes(FONT_SIZE),
    "axes.titleweight": "bold",
    "axes.edgecolor": MUTED.light,
    "axes.labelcolor": INK.light,
    "axes.facecolor": "none",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "figure.facecolor": PAPER.light,
    "grid.color": GRID.light,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED.light,
    "ytick.color": MUTED.light,
    "xtick.labelcolor": INK.light,
    "ytick.labelcolor": INK.light,
    "text.color": INK.light,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    **FIXED,
}
