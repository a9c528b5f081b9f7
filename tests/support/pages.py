# SPDX-License-Identifier: GPL-2.0-only
"""What a reader of a page sees."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path


def text_of(page: Path) -> str:
    """The page's words, without figures."""
    bare = re.sub(r"<(script|style|svg).*?</\1>", " ", page.read_text(), flags=re.DOTALL)
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", bare).split()))


class Table(HTMLParser):
    """The body of a page's table with this label, as rows of texts."""

    def __init__(self, page: Path, label: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._wanted, self._inside, self._body = label, False, False
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if dict(attrs).get("aria-label") == self._wanted:
            self._inside = True
        if tag == "tbody":
            self._body = self._inside
        if self._body and tag == "tr":
            self.rows.append([])
        if self._body and tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._inside = self._body = False

    def handle_data(self, data: str) -> None:
        if self._body and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip(" \n") and data
