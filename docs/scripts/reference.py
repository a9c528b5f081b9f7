# SPDX-License-Identifier: GPL-2.0-only
"""Write the generated pages of docs/reference: `python -m docs.scripts.reference`.

The repository has those that a reader of it looks up. What a command prints as well (--help,
`fscale schema`) is written when the site or the man pages are built.
"""

import functools
import shutil
import textwrap
from pathlib import Path

from docs.scripts import columns, commands, keys, write_pages

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
WIDTH = 100


@functools.cache
def kept() -> dict[str, str]:
    """File name below docs/reference -> Markdown, of the pages in the repository."""
    return _wrapped(keys.pages(keys.KEYS) | {"table-columns.md": columns.page()})


@functools.cache
def built() -> dict[str, str]:
    """The same of the pages that are written for the site and the man pages alone."""
    return _wrapped(commands.pages() | keys.pages(keys.FIELDS))


def _wrapped(pages: dict[str, str]) -> dict[str, str]:
    return {name: _wrap(text) for name, text in pages.items()}


def _wrap(text: str) -> str:
    """The text with lines of at most WIDTH columns, but for code, tables and single long words."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        code ^= line.startswith("```")
        if code or len(line) <= WIDTH or line.startswith(("#", "|")):
            lines.append(line.rstrip())
            continue
        indent = "  " if line.startswith(("* ", "- ", ": ")) else ""
        lines += textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    shutil.rmtree(REFERENCE / "commands", ignore_errors=True)
    write_pages(REFERENCE, kept() | built())
