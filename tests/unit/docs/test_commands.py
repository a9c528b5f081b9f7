# SPDX-License-Identifier: GPL-2.0-only
"""Every command that the README, the docs and messages show is one that fscale takes.

test_guide has the pages of the guide.
"""

import ast
import re

import pytest

from fscale.model.paths import ROOT, package_files
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


def test_messages_name_commands_that_exist() -> None:
    named = [
        match[1]
        for path in package_files()
        if path.suffix == ".py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for match in re.finditer(r"`fscale ([a-z][^`\n]*)`", node.value)
    ]
    assert "vm run" in named
    refused = [refusal(words_of(arguments)) or "" for arguments in named]
    assert [text for text in refused if text.startswith("there is no")] == []
