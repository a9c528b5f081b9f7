# SPDX-License-Identifier: GPL-2.0-only
"""Writes KTAP version 1, as specified in the kernel's Documentation/dev-tools/ktap.rst."""

from collections.abc import Sequence
from dataclasses import dataclass

from fscale.model.files import printable

_VERSION = "KTAP version 1"
_INDENT = "  "


@dataclass(frozen=True)
class Test:
    """A test: `directive` is SKIP, ERROR or empty, `text` follows it, then `subtests`."""

    name: str
    ok: bool
    directive: str = ""
    text: str = ""
    diagnostics: tuple[str, ...] = ()
    subtests: tuple["Test", ...] = ()


def render(tests: Sequence[Test]) -> str:
    """The whole text."""
    return "\n".join(_level(tests)) + "\n"


def one_line(text: str) -> str:
    """The text in one line, without unprintable characters."""
    return printable(" ".join(text.split()))


def _level(tests: Sequence[Test], name: str = "") -> list[str]:
    lines = [_VERSION, *([f"# Subtest: {_described(name)}"] if name else []), f"1..{len(tests)}"]
    for number, test in enumerate(tests, 1):
        if test.subtests:
            lines += [_INDENT + line for line in _level(test.subtests, test.name)]
        lines += [f"# {one_line(text)}" for text in test.diagnostics]
        tail = one_line(f"{test.directive} {test.text}")
        result = f"{'ok' if test.ok else 'not ok'} {number} {_described(test.name)}"
        lines.append(f"{result} # {tail}" if tail else result)
    return lines


def _described(name: str) -> str:
    """A description, in which # is replaced because it would begin a directive."""
    return one_line(name).replace("#", "_")
