# SPDX-License-Identifier: GPL-2.0-only
"""Terminal output: text from elsewhere is shown, but its escape sequences have no effect."""

import os
import sys

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from fscale.model.files import printable

# Characters of drawings and tables, each one column wide, and their replacements.
_ASCII = str.maketrans("─│┌┐└┘├┤┬┴┼·†…\u00d7\u2013", "-|+++++++++.!~x-")


class _Printable:
    """A renderable without its own escape sequences; the console adds the styles."""

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
        # A name in other scripts keeps its width, so that columns stay aligned.
        known = shown.translate(_ASCII)
        return "".join(c if c.isascii() else "?" * cell_len(c) for c in known)


class _Hook(RenderHook):
    def __init__(self, ascii_only: bool) -> None:
        self._ascii_only = ascii_only

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Printable(r, self._ascii_only) for r in renderables]


def only_ascii() -> bool:
    """Return whether the reader of standard output may be unable to show other characters.

    Python writes UTF-8 even in the C locale, so the locale is checked as well as the stream. A dumb
    terminal may have any font.
    """
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    spoken = locale.replace("-", "").lower()
    if os.environ.get("TERM") in ("dumb", "unknown") or "utf8" not in spoken:
        return True
    return "utf" not in (sys.stdout.encoding or "").lower()


def terminal(*, error: bool = False, ascii_only: bool = False) -> Console:
    """Make a console that shows text as it is: no markup, highlighting or escape sequences.

    It is as wide as COLUMNS says, or else the terminal, or 80 columns where there is none.
    `ascii_only` replaces every other character.
    """
    console = Console(stderr=error, markup=False, emoji=False, highlight=False)
    console.push_render_hook(_Hook(ascii_only))
    return console


def say(text: str, *, error: bool = False) -> None:
    """Print a line without wrapping it."""
    terminal(error=error).print(text, soft_wrap=True)


def print_line(line: str) -> None:
    """Print a line as it is; if the reader has closed the pipe (`| head`), drop what follows."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
