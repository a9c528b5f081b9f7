# SPDX-License-Identifier: GPL-2.0-only
"""Measures text in the fonts of the settings that are in force, and makes it fit a width.

A text's `kind` is the matplotlib setting of its size.
"""

import textwrap
from typing import Literal

import matplotlib as mpl
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

Kind = Literal["font.size", "axes.titlesize", "xtick.labelsize", "legend.fontsize"]
TEXT: Kind = "font.size"
TITLE: Kind = "axes.titlesize"
TICK: Kind = "xtick.labelsize"
KEY: Kind = "legend.fontsize"
ELLIPSIS = "\u2026"


def _font(kind: Kind) -> FontProperties:
    weight = mpl.rcParams["axes.titleweight" if kind == TITLE else "font.weight"]
    return FontProperties(size=mpl.rcParams[kind], weight=weight)


def em(kind: Kind) -> float:
    """The size of a text, in inches."""
    return float(_font(kind).get_size_in_points()) / 72


def text_width(text: str, kind: Kind) -> float:
    """The width of a line, in inches."""
    width, _, _ = text_to_path.get_text_width_height_descent(text, _font(kind), ismath=False)
    return float(width) / 72


def wrapped(text: str, width: float, kind: Kind) -> str:
    """The text, broken into lines of at most `width` inches (or of one character)."""
    for characters in range(_fitting(text, width, kind), 0, -1):
        lines = textwrap.wrap(text, characters)
        if all(text_width(line, kind) <= width for line in lines):
            break
    return "\n".join(lines)


def shortened(text: str, width: float, kind: Kind) -> str:
    """The text if it fits into `width` inches, else its beginning and its end."""
    shown = text
    for kept in range(_fitting(text, width, kind), 0, -1):
        if kept < len(text):
            shown = text[: kept - kept // 2] + ELLIPSIS + text[len(text) - kept // 2 :]
        if text_width(shown, kind) <= width:
            break
    return shown


def _fitting(text: str, width: float, kind: Kind) -> int:
    """About how many characters fit into `width` inches, from 1 to all."""
    return max(1, min(len(text), int(len(text) * width / (text_width(text, kind) or width))))
