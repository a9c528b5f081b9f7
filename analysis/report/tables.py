# SPDX-License-Identifier: GPL-2.0-only
"""The sections that are tables: figures, failed cells, machine, commands."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fscale.analysis.reader import as_typed
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.analysis.tables.metrics import FAIRNESS_COLUMNS, LATENCY_COLUMNS
from fscale.model.results import Cell, Command

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)")
SHOWN_VALUES = 3  # values of a varying argument that are shown; the rest is only counted


@dataclass(frozen=True)
class Exclusion:
    """Cells that share a state and a reason."""

    state: str
    reason: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """Commands that differ only in the values of some arguments."""

    text: str
    example: str
    count: int
    seconds: float
    failed: int


def _figures(report: Report) -> str | None:
    if not report.figures:
        return None
    return render(
        "sections/figures.html.j2",
        rows=report.figures,
        several=len(report.pages) > 1,
        several_runs=report.several,
        writers=any(row["background_per_second"] is not None for row in report.figures),
        times=_known(report, LATENCY_COLUMNS),
        shares=_known(report, FAIRNESS_COLUMNS),
    )


def _known(report: Report, columns: Mapping[str, str]) -> dict[str, str]:
    """Those of the columns, metric -> key of a row, in which a row has a figure."""
    return {
        metric: key
        for metric, key in columns.items()
        if any(row[key] is not None for row in report.figures)
    }


def troubles(report: Report) -> list[Exclusion]:
    """Cells that are not in the figures, or were disturbed, measured again or throttled.

    Cells whose reasons differ only in numbers share a line with the range of the numbers.
    """
    groups: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for state, reason, name in _remarks(report):
        groups[state, _NUMBER.sub("#", reason)].append((reason, name))
    return [
        Exclusion(state, _merge([r for r, _ in remarks]), tuple(name for _, name in remarks))
        for (state, _), remarks in sorted(groups.items())
    ]


def _remarks(report: Report) -> Iterator[tuple[str, str, str]]:
    for file in report.results.unreadable:
        yield "unreadable", file.reason, file.file
    for cell in report.results.every:
        if cell.status != "ok":
            yield cell.status, _reason(cell), cell.id
        elif cell.key.profile is not None:
            yield "profile", "a profiling repetition; never scored", cell.id
        if cell.status == "ok" and cell.disturbed is not None:
            yield "disturbed", cell.disturbed, cell.id
        if cell.replaces is not None:
            yield "remeasured", f"the first time {cell.replaces}", cell.id
        if cell.thermal_throttled:
            yield "throttled", f"because of heat, {cell.thermal_throttled} times", cell.id


def _merge(reasons: list[str]) -> str:
    columns = zip(*(_NUMBER.findall(reason) for reason in reasons), strict=True)
    ranges = []
    for column in columns:
        low, high = min(column, key=float), max(column, key=float)
        ranges.append(low if low == high else f"{low} to {high}")
    return _NUMBER.sub(lambda _: ranges.pop(0), reasons[0])


def _reason(cell: Cell) -> str:
    error = cell.bench.error if cell.bench else None
    if error is None:
        return cell.reason or "no reason was recorded"
    where = f" on {error.path}" if error.path else ""
    return f"{cell.reason or 'failed'} ({error.call}{where}: {error.name}, {error.message})"


def _cells(report: Report) -> str:
    return render(
        "sections/cells.html.j2",
        whose=report.whose,
        troubles=troubles(report),
        missing=report.results.missing,
        imported=report.results.run.imported,
    )


def _machine(report: Report) -> str:
    controls = sorted({c.cpu_control for c in report.results.cells})
    return render("sections/machine.html.j2", run=report.results.run, controls=controls)


def _shape(argv: list[str]) -> tuple[str, ...]:
    options = [a.partition("=")[0] if a.startswith("-") else "" for a in argv[1:]]
    if "-t" in argv[1:-1]:  # mount commands of different types get separate lines
        options.append(argv[argv.index("-t") + 1])
    return (argv[0], *options)


def _argument(values: list[str]) -> str:
    if len(values) == 1:
        return shlex.quote(values[0])
    if len(values) <= SHOWN_VALUES:
        return "{" + " | ".join(values) + "}"
    return (
        "{" + " | ".join(values[:SHOWN_VALUES]) + f" | and {len(values) - SHOWN_VALUES} more" + "}"
    )


def templates(commands: list[Command]) -> list[Template]:
    """Fold commands with the same program and options into one line each, in order of use.

    Arguments that vary are shown as {one | other}.
    """
    groups: dict[tuple[str, ...], list[Command]] = defaultdict(list)
    for command in commands:
        groups[_shape(command.argv)].append(command)
    folded = []
    for same in groups.values():
        columns = zip(*(c.argv for c in same), strict=True)
        folded.append(
            Template(
                " ".join(_argument(list(dict.fromkeys(column))) for column in columns),
                shlex.join(same[0].argv),
                len(same),
                sum(c.seconds for c in same),
                sum(c.returncode != 0 for c in same),
            )
        )
    return folded


def _commands(report: Report) -> str | None:
    cells = sorted(report.results.every, key=lambda c: c.started)
    commands = [command for cell in cells for command in cell.commands if command.argv]
    if not commands:
        return None
    return render("sections/commands.html.j2", templates=templates(commands), total=len(commands))


def _warnings(report: Report) -> str | None:
    warnings = list(dict.fromkeys(report.results.run.warnings))
    return render("sections/warnings.html.j2", warnings=warnings) if warnings else None


def _reproduce(report: Report) -> str:
    run = report.results.run
    command = "\n".join(map(as_typed, run.command))
    return render("sections/reproduce.html.j2", run=run, command=command)


FIGURES = Section("Figures", "figures", _figures)
CELLS = Section("Failed, skipped and disturbed cells", "cells", _cells)
MACHINE = Section("Machine", "machine", _machine)
COMMANDS = Section("Commands executed", "commands", _commands)
WARNINGS = Section("Warnings", "warnings", _warnings)
REPRODUCE = Section("How to reproduce this", "reproduce", _reproduce)
