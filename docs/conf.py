# SPDX-License-Identifier: GPL-2.0-only
"""Sphinx makes the site and the man pages of these pages: `make docs`."""

from pathlib import Path
from typing import Any

from fscale import __version__

project = "fscale"
author = "the fscale developers"
version = release = __version__
extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
exclude_patterns = ["ci/**", "scripts/**"]
# A link into the source tree leads out of the site; docs.scripts.check looks whether it is there.
suppress_warnings = ["myst.xref_missing"]
# Options begin with two hyphens, not with a dash.
smartquotes = False
html_theme = "furo"
html_title = "fscale"
html_extra_path = ["../build/docs/schemas"]
templates_path: list[str] = []
nitpicky = True


def _summary(page: Path) -> str:
    """The first sentence of a page, which stands below its title."""
    return page.read_text().split("\n\n")[1].replace("\n", " ").partition(". ")[0].rstrip(".")


_COMMANDS = sorted((Path(__file__).parent / "reference/commands").glob("*.md"))
man_pages = [
    (f"reference/commands/{page.stem}", f"fscale-{page.stem}", _summary(page), author, 1)
    for page in _COMMANDS
    if page.stem != "index"
] + [
    ("reference/commands/index", "fscale", "measures how file systems scale", author, 1),
    ("reference/suite-keys", "fscale-suite", "keys of a suite", author, 5),
]


def _drop_links(app: Any, doctree: Any, _name: str) -> None:
    """A man page shows a link to another page as `<>` behind its text."""
    if app.builder.name == "man":
        for link in [*doctree.findall(lambda node: node.tagname == "reference")]:
            link.replace_self(link.children)


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("doctree-resolved", _drop_links)
