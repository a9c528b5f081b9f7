# SPDX-License-Identifier: GPL-2.0-only
"""Every command that the README and the docs show is one that fscale takes.

test_guide has the pages of the guide.
"""

import re

import pytest

from fscale.model.paths import ROOT
from tests.support.command_lines import SUBSTITUTED, refusal, words_of
from tests.support.guide import GUIDE

SHOWN = re.compile(r"^ {4}(?:bin/)?fscale ([a-z].*)$|`(?:bin/)?fscale ([a-z][^`]*)`")


def shown() -> list[tuple[str, str]]:
    """(where, arguments) of each."""
    found = []
    pages = [page for page in sorted((ROOT / "docs").rglob("*.md")) if GUIDE not in page.parents]
    for page in [ROOT / "README.md", *pages]:
        text = SUBSTITUTED.sub("PATH", page.read_text().replace("\\\n", " "))
        for number, line in enumerate(text.splitlines(), 1):
            for match in SHOWN.finditer(line):
                found.append((f"{page.relative_to(ROOT)}:{number}", match[1] or match[2]))
    return found


@pytest.mark.parametrize(("where", "arguments"), shown())
def test_command_is_taken(where: str, arguments: str) -> None:
    refused = refusal(words_of(arguments))
    assert refused is None, f"{where}: {refused}"
