# SPDX-License-Identifier: GPL-2.0-only
"""KTAP, version 1: a test for each point, a subtest for each repetition.

The format is that of Documentation/dev-tools/ktap.rst in the kernel's tree. A repetition passes
when it has a figure: whether that is a good one, `fscale compare` says.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.formats.outcome import Entry, Group, groups, one_line
from analysis.reader import Results

_VERSION = "KTAP version 1"


@dataclass(frozen=True)
class Line:
    """A result; `directive` is SKIP, ERROR or none, `said` follows it."""

    name: str
    ok: bool
    directive: str = ""
    said: str = ""


def render(results: Results) -> str:
    """The whole run."""
    found = groups(results)
    lines = [_VERSION, f"1..{len(found)}"]
    for number, group in enumerate(found, 1):
        lines += ["  " + line for line in test([_line(e) for e in group.entries], group.name)]
        if group.said:
            lines.append(f"# {group.said}")
        lines.append(result(number, _whole(group)))
    return "\n".join(lines) + "\n"


def test(results: Sequence[Line], subtest: str = "") -> list[str]:
    """The lines of one level."""
    header = [f"# Subtest: {_name(subtest)}"] if subtest else []
    plan = f"1..{len(results)}"
    return [_VERSION, *header, plan, *(result(i, line) for i, line in enumerate(results, 1))]


def result(number: int, line: Line) -> str:
    """A result line."""
    tail = one_line(" ".join(part for part in (line.directive, line.said) if part))
    return f"{'ok' if line.ok else 'not ok'} {number} {_name(line.name)}" + (
        f" # {tail}" if tail else ""
    )


def _name(text: str) -> str:
    """A description may not hold what begins a directive."""
    return one_line(text).replace("#", "_")


def _line(entry: Entry) -> Line:
    ok = entry.outcome in ("measured", "skipped")
    directive = {"skipped": "SKIP", "unusable": "ERROR", "absent": "ERROR"}.get(entry.outcome, "")
    return Line(entry.name, ok, directive, entry.said)


def _whole(group: Group) -> Line:
    """A point is skipped when all its repetitions are, and fails when one did."""
    if all(e.outcome == "skipped" for e in group.entries):
        return Line(group.name, True, "SKIP", group.entries[0].said)
    return Line(group.name, all(e.outcome in ("measured", "skipped") for e in group.entries))
