# SPDX-License-Identifier: GPL-2.0-only
"""The terminal: text of others is shown as it is and never obeyed."""

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from fscale.model.files import printable


class _Printable:
    """A renderable without escape sequences of its own; styles are the console's."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in console.render(self._renderable, options):
            yield part if part.control else Segment(printable(part.text), part.style)


class _Hook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Printable(r) for r in renderables]


def terminal(*, error: bool = False, width: int | None = None) -> Console:
    """A console for text of others: no markup, no highlighting, no escape sequences.

    `width`: of a pipe; a terminal has its own.
    """
    console = Console(stderr=error, markup=False, emoji=False, highlight=False)
    if width is not None and not console.is_terminal:
        console.width = max(console.width, width)
    console.push_render_hook(_Hook())
    return console


def say(text: str, *, error: bool = False) -> None:
    """Print a line as it is, however long."""
    terminal(error=error).print(text, soft_wrap=True)
