# SPDX-License-Identifier: GPL-2.0-only
"""Write the generated pages of docs/reference: `python -m docs.scripts.reference`."""

import textwrap
from pathlib import Path

from docs.scripts import commands, keys, write_pages

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
WIDTH = 100


def pages() -> dict[str, str]:
    """File name below docs/reference -> Markdown, wrapped."""
    made = commands.pages() | keys.pages()
    return {name: _wrapped(text) for name, text in made.items()}


def _wrapped(text: str) -> str:
    """The text with lines of at most WIDTH columns, but for code and single long words."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        code ^= line.startswith("```")
        if code or len(line) <= WIDTH or line.startswith("#"):
            lines.append(line.rstrip())
            continue
        indent = "  " if line.startswith(("* ", "- ", ": ")) else ""
        lines += textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    write_pages(REFERENCE, pages())
