# SPDX-License-Identifier: GPL-2.0-only
"""The pages of docs/guide: their commands, and the output that they show, compared in shape."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fscale.model.paths import ROOT

GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))
PROMPT = "$ "
ELLIPSIS = "..."

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:bin/)?fscale [a-z][^`]*)`")


@dataclass(frozen=True)
class Example:
    """A command of a page and the lines that the page shows after it."""

    command: str
    shown: tuple[str, ...]


def boxes(text: str, kind: str) -> list[str]:
    """The contents of the fenced blocks of a kind."""
    return [inside for name, inside in _FENCE.findall(text) if name == kind]


def examples(text: str) -> list[Example]:
    """The commands of all `console` blocks of a page, in order."""
    return [example for box in boxes(text, "console") for example in _of_box(box)]


def _of_box(box: str) -> Iterator[Example]:
    for part in re.split(rf"^{re.escape(PROMPT)}", box, flags=re.MULTILINE)[1:]:
        command, output = _first_command(part.splitlines())
        yield Example(command, tuple(output))


def _first_command(lines: Sequence[str]) -> tuple[str, list[str]]:
    """A command that may go on after a backslash, and the lines after it."""
    for number, line in enumerate(lines, 1):
        if not line.endswith("\\"):
            return "\n".join(lines[:number]), list(lines[number:])
    raise ValueError(f"a command ends with a backslash: {lines[-1]}")


def commands(text: str) -> list[str]:
    """Every command line of fscale on a page: of its blocks, and within its sentences."""
    lines = [example.command for example in examples(text)]
    for box in boxes(text, "sh"):
        rest = [line.strip() for line in box.splitlines() if line.strip()]
        while rest:
            command, rest = _first_command(rest)
            lines.append(command)
    joined = [line.replace("\\\n", " ") for line in lines]
    inline = _INLINE.findall(_FENCE.sub("", text).replace("\n", " "))
    begins = re.compile(r"(?:bin/)?fscale [a-z]")
    return [line for line in [*joined, *inline] if begins.match(line)]


# What differs from run to run and from machine to machine, and what stands for it.
_MASKS = (
    (re.compile(r"^\[\d+/\d+, .*"), "PROGRESS"),
    (re.compile(r"^ *\d+\.\d\d% .*"), "SUSPECT"),
    (re.compile(r"^(\w+ on \w+) (scales|saturates|collapses)\b.*"), r"\1 DIAGNOSIS"),
    (
        re.compile(
            r"^fscale: (doubtful|of \d|no speed-up|could not judge|no regression|\w+ on ).*"
        ),
        "CONCLUSION",
    ),
    (re.compile(r"^(yes|no)\b"), "WHETHER"),
    (re.compile(r"; \d+ (disturbed by other load|measured again)"), ""),
    (re.compile(r"\b[kM] ops/s"), "ops/s"),
    (re.compile(r"(?<![\w.])/[^\s,;:)]+"), "PATH"),
    (re.compile(r"\b(slower|faster|same|undecided)\b"), "VERDICT"),
    (re.compile(r"\b(throughput|per-cpu-second|settled)\b"), "METRIC"),
    (re.compile(r"[-+]?\d[\d.,:]*[kKMG]?\b"), "N"),
    (re.compile(r"(?<=\s)(\+\+|\+|=|--|-)(?=\s|$)"), "SIGN"),
    (re.compile(r"[─━]+"), "RULE"),
    (re.compile(r"\s+"), " "),
)


def masked(line: str) -> str:
    """A line without its numbers, times, paths and verdicts, and with single blanks."""
    for pattern, word in _MASKS:
        line = pattern.sub(word, line)
    return line.strip()


# Warnings are the machine's own; curves, frames of tables, and what goes on from the line above, as
# long as the terminal is narrow, depend on the numbers.
_LEFT_OUT = re.compile(r"^warning:|^ *[\d.]*[│┤┌└┏┃┡]|^ {25}")


def _lines(lines: Sequence[str]) -> list[str]:
    """The lines that are compared."""
    return [masked(one) for one in lines if one.strip() and not _LEFT_OUT.match(one)]


def same_shape(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether an output has the lines that a page shows.

    A line `...` of the page stands for any lines, one that ends with ` ...` for each line that
    begins so.
    """
    return _matches(_lines(shown), _lines(printed))


def _matches(shown: list[str], printed: list[str]) -> bool:
    # reached[i]: the lines so far can be what the first i lines of the page show.
    reached = {0}
    reached |= _skipped(shown, reached)
    for line in printed:
        after = {i for i in reached if i < len(shown) and shown[i] == ELLIPSIS}
        after |= {i + 1 for i in reached if i < len(shown) and _is_line(shown[i], line)}
        reached = after | _skipped(shown, after)
    return len(shown) in reached


def _skipped(shown: list[str], reached: set[int]) -> set[int]:
    """Where one gets to when each `...` stands for no line."""
    found = set()
    for i in reached:
        end = i
        while end < len(shown) and shown[end] == ELLIPSIS:
            end += 1
            found.add(end)
    return found


def _is_line(shown: str, line: str) -> bool:
    if shown.endswith(f" {ELLIPSIS}"):
        return line.startswith(shown[: -len(ELLIPSIS)].rstrip())
    return shown == line


def page(name: str) -> str:
    """The text of a page."""
    return Path(GUIDE / name).read_text()
