# SPDX-License-Identifier: GPL-2.0-only
"""Every command that the README and the docs show is one that fscale takes."""

import itertools
import re
import shlex

import pytest

from fscale.model.paths import ROOT
from tests.command_lines import refusal

SHOWN = re.compile(r"^ {4}(?:bin/)?fscale ([a-z].*)$|`(?:bin/)?fscale ([a-z][^`]*)`")
SUBSTITUTED = re.compile(r"\$\(.*?\)")
AFTER = "();<>|&"  # what a shell or a reader takes for something else


def shown() -> list[tuple[str, str]]:
    """(where, arguments) of each."""
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = SUBSTITUTED.sub("PATH", page.read_text().replace("\\\n", " "))
        for number, line in enumerate(text.splitlines(), 1):
            for match in SHOWN.finditer(line):
                found.append((f"{page.relative_to(ROOT)}:{number}", match[1] or match[2]))
    return found


def words_of(arguments: str) -> list[str]:
    """The words of a command line up to a comment, a remark or another command."""
    lexer = shlex.shlex(arguments, posix=True, punctuation_chars=AFTER)
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: word[0] not in AFTER, lexer))


@pytest.mark.parametrize(("where", "arguments"), shown())
def test_command_is_taken(where: str, arguments: str) -> None:
    refused = refusal(words_of(arguments))
    assert refused is None, f"{where}: {refused}"
