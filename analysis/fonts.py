# SPDX-License-Identifier: GPL-2.0-only
"""Finds the fonts of plots among those that are installed."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findSystemFonts, fontManager

from fscale.model.catalogue import nearest
from fscale.model.errors import FscaleError

GLYPHS = "DejaVu Sans"  # comes with matplotlib, and has the characters that other fonts lack
_GENERIC = ("serif", "sans-serif", "cursive", "fantasy", "monospace")
_ALIKE = {
    "times": ("Nimbus Roman", "Liberation Serif", "Tinos", "FreeSerif", "STIXGeneral"),
    "helvetica": ("Arial", "Nimbus Sans", "Liberation Sans", "Arimo", "FreeSans"),
    "arial": ("Helvetica", "Nimbus Sans", "Liberation Sans", "Arimo", "FreeSans"),
}
"""fonts of papers that Linux does not have, and those made in their likeness"""
_MOST = 4  # fonts that an error names


def installed(families: Iterable[str], source: str) -> list[str]:
    """The first installed one of font families, and one that has the characters which it lacks.

    A generic family, such as serif, stands for those of its setting. `source` is the option or the
    style that asks for them, for an error.

    Raises:
        FscaleError: none of them is installed, or it has outlines that a Type 42 font cannot have.
    """
    settings: dict[Any, Any] = mpl.rcParams
    wanted = [
        name
        for family in families
        for name in (settings[f"font.{family}"] if family in _GENERIC else [family])
    ]
    found = _first(wanted)
    if found is None:
        _look_again()
        found = _first(wanted)
    if found is None:
        raise FscaleError(
            f"{source}: no font {' or '.join(wanted)} is installed; {_advice(wanted[0])}"
        )
    if _has_postscript_outlines(Path(fontManager.findfont(FontProperties(family=[found])))):
        raise FscaleError(
            f"{source}: {found} has PostScript outlines, which cannot be embedded as Type 42; "
            "give a TrueType font"
        )
    return list(dict.fromkeys((found, GLYPHS)))


def _first(wanted: Iterable[str]) -> str | None:
    names = _names()
    return next((name for name in wanted if name.casefold() in names), None)


def _names() -> dict[str, str]:
    return {name.casefold(): name for name in sorted(fontManager.get_font_names())}


def _look_again() -> None:
    """Look for fonts that were installed after matplotlib had listed all."""
    known = {font.fname for font in fontManager.ttflist}
    for path in set(findSystemFonts()) - known:
        with contextlib.suppress(OSError, RuntimeError):  # a damaged font is none
            fontManager.addfont(path)


def _advice(name: str) -> str:
    asked, names = name.casefold(), _names()
    alike = [n for begun, others in _ALIKE.items() if asked.startswith(begun) for n in others]
    near = [n for n in names if asked in n] + nearest(asked, names)
    shown = dict.fromkeys(
        names[n] for n in [*map(str.casefold, alike), *near] if n in names and n != asked
    )
    if not shown:
        return "`fc-list : family` lists the fonts of this machine"
    return f"give another one, such as {' or '.join(list(shown)[:_MOST])}"


def _has_postscript_outlines(path: Path) -> bool:
    with path.open("rb") as file:
        begins = file.read(16)
        if begins[:4] == b"ttcf":  # a collection, which has the offset of its first font here
            file.seek(int.from_bytes(begins[12:16]))
            begins = file.read(4)
    return begins[:4] == b"OTTO"
