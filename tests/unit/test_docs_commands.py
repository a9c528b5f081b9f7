# SPDX-License-Identifier: GPL-2.0-only
"""Every command that the README and the docs show is one that fscale takes."""

import re

import pytest

from fscale.model.paths import ROOT
from tests.command_lines import SUBSTITUTED, refusal, words_of

SHOWN = re.compile(r"^ {4}(?:bin/)?fscale ([a-z].*)$|`(?:bin/)?fscale ([a-z][^`]*)`")


def shown() -> list[tuple[str, str]]:
    """(where, arguments) of each."""
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = SUBSTITUTED.sub("PATH", page.read_text().replace("\\\n", " "))
        for number, line in enumerate(text.splitlines(), 1):
            for match in SHOWN.finditer(line):
                found.append((f"{page.relative_to(ROOT)}:{number}", match[1] or match[2]))
    return found


@pytest.mark.parametrize(("where", "arguments"), shown())
def test_command_is_taken(where: str, arguments: str) -> None:
    refused = refusal(words_of(arguments))
    assert refused is None, f"{where}: {refused}"
