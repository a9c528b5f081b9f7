# SPDX-License-Identifier: GPL-2.0-only
"""The page of calls that conflict: shares, what spoils most, what the years have changed."""

from typing import Any

from docs.scripts import table


def page(data: dict[str, Any], source: str) -> str:
    """The Markdown of a file of pack_conflicts.py."""
    matrices = data["matrices"]
    kernels = list(dict.fromkeys(one["kernel"] for one in matrices))
    filesystems = list(dict.fromkeys(one["filesystem"] for one in matrices))
    at = {(one["filesystem"], one["kernel"]): one for one in matrices}
    lines = [
        f"# {data['title']}",
        "",
        *(f"- {run['started']}: `{run['command']}`" for run in data["runs"]),
        f"- Simulated guests; {matrices[0]['boots']} boots of each file system and kernel; "
        f"{matrices[0]['tests']:,} tests of pairs of calls that commute.",
        f"- Data: [{source}](data/{source}).",
        "",
        "[The guide](../guide/which-calls-conflict.md) says what a test is. How many of all tests "
        "have no conflict, in percent; in brackets, how many of the executed ones conflict merely "
        "at different bytes of a line:",
        "",
        *table(
            ["File system", *kernels],
            [
                [filesystem, *(_share(at[filesystem, kernel]) for kernel in kernels)]
                for filesystem in filesystems
            ],
        ),
        "",
        f"The objects that spoil the most pairs of calls on {kernels[-1]}, and the numbers of "
        "pairs and tests. *Different* bytes: another layout of the struct would do.",
    ]
    for filesystem in filesystems:
        lines += ["", f"## {filesystem}", "", *_objects(at[filesystem, kernels[-1]])]
    lines += [
        "",
        "## What the years have changed",
        "",
        "Tests that conflict on one of two kernels alone, at the same bytes of a line, and the "
        "objects of most of them.",
        "",
        *table(
            ["File system", "Kernels", "Freed", "Objects", "Newly conflicting", "Objects"],
            [
                [name, f"{_short(old)}, {_short(new)}", *_tests(freed), *_tests(worse)]
                for name, old, new, freed, worse in data["years"]
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def _share(one: dict[str, Any]) -> str:
    return f"{one['share']:.0%} ({one['layout'] / one['tests']:.0%})"


def _objects(one: dict[str, Any]) -> list[str]:
    rows = [
        [f"`{name}`", "different" if layout else "same", str(pairs), str(tests)]
        for name, layout, pairs, tests in one["spoilers"]
    ]
    return table(["Object", "Bytes", "Pairs", "Tests"], rows)


def _short(kernel: str) -> str:
    return ".".join(kernel.split(".")[:2])


def _tests(found: list[Any]) -> tuple[str, str]:
    number, objects = found
    return str(number), ", ".join(f"`{name}` ({tests})" for name, tests in objects)
