# SPDX-License-Identifier: GPL-2.0-only
"""Makes and checks the pages of docs/."""

from collections.abc import Iterable, Mapping
from pathlib import Path


def write_pages(directory: Path, pages: Mapping[str, str]) -> None:
    """Write the pages, by their names below `directory`, that differ from what is there."""
    for name, text in pages.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def table(head: Iterable[str], rows: Iterable[Iterable[str]], others: str = "--:") -> list[str]:
    """The lines of a Markdown table; `others` aligns all columns but the first."""
    head = list(head)
    align = ["---", *[others] * (len(head) - 1)]
    return ["| " + " | ".join(row) + " |" for row in [head, align, *map(list, rows)]]
