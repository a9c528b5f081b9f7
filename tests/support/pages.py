# SPDX-License-Identifier: GPL-2.0-only
"""What a reader of a page sees."""

import re
from html import unescape
from pathlib import Path


def text_of(page: Path) -> str:
    """The page's words, without figures."""
    bare = re.sub(r"<(script|style|svg).*?</\1>", " ", page.read_text(), flags=re.DOTALL)
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", bare).split()))
