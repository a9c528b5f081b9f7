# SPDX-License-Identifier: GPL-2.0-only
"""A row for each run: when and how it was measured, and on what machine."""

from collections.abc import Callable
from dataclasses import dataclass

from fscale.analysis.reader import Results, as_typed
from fscale.analysis.tables.column import RUN_FACTS, RUN_NAME, Column, Row, Value, make_row
from fscale.model.results import Machine, Run


@dataclass(frozen=True)
class NamedResults:
    """A run in memory, and its name."""

    run: str
    results: Results

    @property
    def about(self) -> Run:
        """What is recorded of the run."""
        return self.results.run


def row(run: NamedResults) -> Row:
    """The row of a run."""
    return make_row(COLUMNS, run)


def _text(name: str, meaning: str, value: Callable[[Run], str | None]) -> Column[NamedResults]:
    return Column(name, "string", meaning, lambda n: value(n.about))


def _number(
    name: str, meaning: str, value: Callable[[Machine], Value], unit: str = ""
) -> Column[NamedResults]:
    return Column(name, "integer", meaning, lambda n: value(n.about.machine), unit)


def _build(run: Run) -> str | None:
    return run.machine.build.version if run.machine.build else None


def _build_id(run: Run) -> str | None:
    return run.machine.build.id if run.machine.build else None


def _huge_pages(run: Run) -> str | None:
    return run.machine.tuning.huge_pages if run.machine.tuning else None


def _preempt(run: Run) -> str | None:
    return run.machine.tuning.preempt if run.machine.tuning else None


def _turbo(one: NamedResults) -> bool | None:
    tuning = one.about.machine.tuning
    return tuning.turbo if tuning else None


COLUMNS: tuple[Column[NamedResults], ...] = (
    Column("run", "string", RUN_NAME, lambda n: n.run),
    Column("path", "string", "results directory", lambda n: str(n.results.path)),
    *RUN_FACTS,
    _text("started", "UTC, ISO 8601", lambda run: run.started),
    _text("finished", "UTC, ISO 8601", lambda run: run.finished),
    _text("state", "complete, interrupted, failed, unfinished", lambda run: run.state_shown),
    _text("command", "command line", lambda run: as_typed(run.command[0]) if run.command else None),
    _text("fscale_version", "version of fscale", lambda run: run.fscale_version),
    _text("revision", "commit of fscale", lambda run: run.revision),
    Column("planned_cells", "integer", "cells of the plan", lambda n: n.about.planned_cells),
    Column(
        "missing_cells",
        "integer",
        "cells of the plan that left no result",
        lambda n: n.results.missing,
    ),
    _text("kernel_build", "`uname -v`: number and time of the build", _build),
    _text("kernel_build_id", "GNU build id of the kernel", _build_id),
    _text("architecture", "`uname -m`", lambda run: run.machine.architecture),
    _text("cpu_model", "model of the CPUs", lambda run: run.machine.cpu_model),
    _number("cpus", "online logical CPUs", lambda machine: len(machine.topology)),
    _number("physical_cores", "cores with an online CPU", lambda machine: machine.cores),
    _number("sockets", "sockets", lambda machine: len({cpu.socket for cpu in machine.topology})),
    _number(
        "memory_bytes",
        "memory; empty if it was not recorded",
        lambda machine: machine.memory_bytes or None,
        "B",
    ),
    _text("governor", "cpufreq governor", lambda run: run.machine.governor),
    Column("turbo", "boolean", "whether CPUs may exceed their nominal frequency", _turbo),
    _text("huge_pages", "transparent huge pages: always, madvise, never", _huge_pages),
    _text("preempt", "preemption model: none, voluntary, full, lazy, rt", _preempt),
    _text(
        "virtualization", "hypervisor, if it was recorded", lambda run: run.machine.virtualization
    ),
)
