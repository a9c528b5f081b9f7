# SPDX-License-Identifier: GPL-2.0-only
"""The terminal: text of others is shown as it is and never obeyed."""

import os
import sys

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from fscale.model.files import printable

# What drawings and tables are made of; each has a width of one.
_ASCII = str.maketrans("─│┌┐└┘├┤┬┴┼·†…\u00d7\u2013", "-|+++++++++.!~x-")


class _Printable:
    """A renderable without escape sequences of its own; styles are the console's."""

    def __init__(self, renderable: ConsoleRenderable, ascii_only: bool) -> None:
        self._renderable = renderable
        self._ascii_only = ascii_only

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in console.render(self._renderable, options):
            yield part if part.control else Segment(self._text(part.text), part.style)

    def _text(self, text: str) -> str:
        shown = printable(text)
        if not self._ascii_only or shown.isascii():
            return shown
        # A name in other letters keeps its width, so that columns stay columns.
        known = shown.translate(_ASCII)
        return "".join(c if c.isascii() else "?" * cell_len(c) for c in known)


class _Hook(RenderHook):
    def __init__(self, ascii_only: bool) -> None:
        self._ascii_only = ascii_only

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Printable(r, self._ascii_only) for r in renderables]


def only_ascii() -> bool:
    """Whether what reads standard output may know no other character.

    Python speaks UTF-8 where the locale is C, so the locale is asked and not the stream alone. A
    dumb terminal has whatever was its first font.
    """
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    spoken = locale.replace("-", "").lower()
    if os.environ.get("TERM") in ("dumb", "unknown") or "utf8" not in spoken:
        return True
    return "utf" not in (sys.stdout.encoding or "").lower()


def terminal(*, error: bool = False, width: int | None = None, ascii_only: bool = False) -> Console:
    """A console for text of others: no markup, no highlighting, no escape sequences.

    `width`: of a pipe; a terminal has its own. `ascii_only`: every other character is replaced.
    """
    console = Console(stderr=error, markup=False, emoji=False, highlight=False)
    if width is not None and not console.is_terminal:
        console.width = max(console.width, width)
    console.push_render_hook(_Hook(ascii_only))
    return console


def say(text: str, *, error: bool = False) -> None:
    """Print a line as it is, however long."""
    terminal(error=error).print(text, soft_wrap=True)
