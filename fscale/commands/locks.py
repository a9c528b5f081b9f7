# SPDX-License-Identifier: GPL-2.0-only
"""`fscale locks`: shows what limits each profiled cell of a run."""

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from fscale.analysis.diagnosis import answer, flame
from fscale.analysis.diagnosis.kernelstat import LockClass
from fscale.analysis.diagnosis.run import (
    Diagnosed,
    Diagnosis,
    diagnose,
    flame_name,
    profiled,
    table,
)
from fscale.analysis.diagnosis.triage import Suspect, Triage
from fscale.analysis.diagnosis.verdict import MENTIONED_FROM
from fscale.analysis.hot import as_json, describe_points
from fscale.analysis.reader import Results, load
from fscale.analysis.summary import Point, summarise
from fscale.commands.options.kinds import output_directory, output_file
from fscale.commands.options.shared import JsonFlag
from fscale.model.catalogue import suggest
from fscale.model.errors import FscaleError
from fscale.model.files import Folder, printable, write_named
from fscale.model.tables import Column, Row, Table
from fscale.model.terminal import only_ascii, terminal
from fscale.model.words import plural

_EPILOG = """
More examples:

    fscale run quick --workload MWCM --profile locks,cpu,offcpu --output results/p    # first
    fscale locks results/p MWCM-ext4 --stacks    # all points whose name begins with MWCM-ext4
    fscale locks results/p --json
    fscale locks results/p --flames flames/
"""
_LINES = 8
_SHOWN_FROM = 1e-4
"""share of the cores' time of an object with --all"""
_SUSPECT = (
    *(Column("time", right=True), Column("object")),
    *(Column("blocked", 1, True), Column("spinning", 1, True), Column("sort", 2)),
    *(Column("waits", 3, True), Column("mean", 4, True), Column("longest", 5, True)),
    Column("named by", 6),
)
_LOCK_CLASS = (
    *(Column("/proc/lock_stat"), Column("bounces", 1, True), Column("waits", 1, True)),
    *(Column("waited", 2, True), Column("mean", 3, True), Column("longest", 4, True)),
    *(Column("taken", 5, True), Column("held", 6, True)),
)
_BOTTLENECK = (
    *(Column("FS"), Column("bottleneck"), Column("object")),
    *(Column("scope", 1), Column("operation", 2), Column("evidence", 3)),
)
_COLUMNS = (
    *("Workload", "FS", "Cores", "Of linear"),
    *("First named", "Time", "Blocked", "Spinning", "Named by"),
)


def _locks(
    run: Annotated[Path, typer.Argument(help="Results directory of a run with profiles.")],
    cell: Annotated[
        str | None,
        typer.Argument(
            help="Name of a cell, or its beginning. Default: the points with the most cores of all "
            "curves."
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Also show points with fewer cores, and objects below 1%."),
    ] = False,
    stacks: Annotated[
        bool, typer.Option("--stacks", help="Show the call stacks of each contended object.")
    ] = False,
    flames: Annotated[
        Path | None,
        output_directory("Also write flame graphs (SVG) to this directory."),
    ] = None,
    json: JsonFlag = False,
    markdown: Annotated[
        Path | None,
        output_file("Write one Markdown table of all points to this file; - is standard output."),
    ] = None,
) -> None:
    """Show why cells stop scaling: the contended objects, ordered by the time lost to them.

    Example: fscale locks results/p

    Exit codes: 0: shown, also when there is contention. 2: wrong usage, or the run has no profiles.
    """
    if json and markdown is not None:
        raise FscaleError("--json and --markdown are two forms of the same; give one of them")
    results = load(run)
    simulated = results.run.machine.simulated
    if simulated and flames is not None:
        raise FscaleError(
            f"--flames: {run} is simulated and has no call stacks to draw; leave --flames out"
        )
    diagnosis = diagnose(results, _wanted(results, cell))
    if flames is not None:
        _write_flames(diagnosis, flames)
    if json:
        data = _as_json(diagnosis, results)
        if simulated:
            scored = _scored(results)
            data["simulated"] = as_json(scored[point.key.point] for point in diagnosis.points)
        typer.echo(dumps(data, indent=1))
        return
    if markdown is not None:
        _write_markdown(diagnosis, markdown)
        return
    _show_answer(
        diagnosis, results, whole=every or cell is not None, part=cell is not None, stacks=stacks
    )


def _show_answer(
    diagnosis: Diagnosis, results: Results, *, whole: bool, part: bool, stacks: bool
) -> None:
    """`whole`: also points with fewer cores; `part`: the points are chosen ones of the run."""
    console = terminal(ascii_only=only_ascii())
    if found := answer.sentence(diagnosis.points):
        console.print(f"fscale: {found}", style="bold", markup=False)
    if not part:
        _show_table(console, diagnosis, results)
    shown = diagnosis.points if whole else answer.tops(diagnosis.points)
    scored = _scored(results) if results.run.machine.simulated else None
    for point in shown:
        if scored is not None:
            _show_simulated(console, point, scored[point.key.point])
        else:
            _show(console, point, stacks=stacks, least=_SHOWN_FROM if whole else MENTIONED_FROM)
    if not part:
        _show_costs(console, diagnosis)
    if fewer := len(diagnosis.points) - len(shown):
        console.print(f"{plural(fewer, 'point')} with fewer cores, and objects below 1%: add --all")


def _scored(results: Results) -> dict[str, Point]:
    """The scored points by their names (`CellKey.point`)."""
    return {point.key.point: point for point in summarise(results.scored)}


def _show_simulated(console: Console, point: Diagnosed, summary: Point) -> None:
    lines = describe_points([summary])
    if point.key.cores > 1:
        lines.insert(1, f"    {point.judgement.sentence}")
    for line in lines:
        text = line.lstrip()
        console.print(Padding(Text(text), (0, 0, 0, len(line) - len(text))))


def _wanted(results: Results, cell: str | None) -> list[str]:
    points = profiled(results)
    if not points:
        raise FscaleError(
            f"{results.path} has no profiles; measure it with `fscale run --profile "
            "locks,cpu,offcpu`"
        )
    if cell is None:
        return list(points)
    chosen = [
        point
        for point, cells in points.items()
        if point.startswith(cell) or any(c.id == cell for c in cells)
    ]
    if not chosen:
        raise FscaleError(f"no profiled cell {cell}{suggest(cell, points)}")
    return chosen


def _show(console: Console, point: Diagnosed, *, stacks: bool, least: float) -> None:
    """`least`: the share of the cores' time from which an object is shown."""
    key = point.key
    cores = plural(key.cores, "core")
    console.rule(f"{key.load} {key.filesystem} {key.medium} {key.mode}, {cores}")
    if key.cores > 1:  # the sentence is about the curve
        console.print(point.judgement.sentence, markup=False)
    listed = [s for s in point.triage.suspects if s.share >= least][:_LINES]
    if listed:
        console.print(_suspect_table(listed))
    for suspect in listed:
        if suspect.sampling:
            console.print(f"note: {suspect.sampling}", markup=False)
    if point.triage.turns:
        console.print(f"note: {point.triage.turns}", markup=False)
    for suspect in listed if stacks else []:
        console.print(f"{suspect.name.object}:", markup=False)
        for frames, share in suspect.callers[:3]:
            console.print(f"  {100 * share:5.1f}%  {' < '.join(frames[:10])}", markup=False)
    _show_rest(console, point.triage)


def _suspect_table(suspects: list[Suspect]) -> Table:
    rows = []
    for s in suspects:
        sort = f"{s.sort}, {s.kind}" if s.kind != s.sort else s.sort
        shares = (f"{100 * share:.2f}%" for share in (s.blocked, s.spinning))
        waits = f"{s.count:,}" if s.count else ""
        times = (_micro(s.mean_us), _micro(s.max_us))
        rows.append(
            Row([f"{100 * s.share:.2f}%", s.name.object, *shares, sort, waits, *times, s.evidence])
        )
    return Table(_SUSPECT, rows)


def _micro(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f} us"


def _lock_stat(classes: list[LockClass]) -> Table:
    """The columns of Table 1 of SpanFS (ATC'15) for each lock class, and how long it was held."""
    rows = []
    for lock in classes:
        waits = (f"{lock.bounces:,}", f"{lock.contentions:,}")
        waited = (lock.wait_total, lock.wait_total / lock.contentions, lock.wait_max)
        taken = (f"{lock.acquisitions:,}", _micro(lock.hold_total))
        rows.append(Row([lock.name, *waits, *map(_micro, waited), *taken]))
    return Table(_LOCK_CLASS, rows)


def _show_rest(console: Console, triage: Triage) -> None:
    if triage.counts:
        parts = [f"{event} {value:.4f}" for event, value in triage.counts.items()]
        console.print(f"work per operation: {', '.join(parts)}", markup=False)
    if triage.hardware:
        parts = [f"{event} {value:,.4g}" for event, value in triage.hardware.items()]
        console.print(f"hardware: {', '.join(parts)}", markup=False)
    if triage.lock_classes:
        console.print(_lock_stat(triage.lock_classes[:_LINES]))
    for name, text in triage.texts.items():
        lines = [line for line in text.splitlines() if line.strip()]
        console.print("\n".join([f"{name}:", *lines[: 4 * _LINES]]), markup=False)
    if triage.preempted > 0.05:
        console.print(
            f"note: workers were runnable but preempted {100 * triage.preempted:.0f}% of the time: "
            "other tasks used their CPUs",
            markup=False,
        )
    if triage.incomplete:
        console.print("note: the tracer's table was full, so some contention is not recorded")
    for note in triage.notes:
        console.print(f"note: {note}", markup=False)
    for file, why in triage.unreadable.items():
        console.print(f"note: {file} cannot be used: {why}", markup=False)


def _show_table(console: Console, diagnosis: Diagnosis, results: Results) -> None:
    rows = table(diagnosis, results)
    if rows:
        cells = (
            [r.filesystem, r.bottleneck, r.object, r.scope, ", ".join(r.operations), r.evidence]
            for r in rows
        )
        console.print(Table(_BOTTLENECK, list(map(Row, cells))))


def _show_costs(console: Console, diagnosis: Diagnosis) -> None:
    for cost in diagnosis.costs:
        console.print(
            f"{cost.sentence}, median of {cost.points} points",
            markup=False,
        )
    for warning in diagnosis.warnings:
        console.print(warning, markup=False)


def _markdown(diagnosis: Diagnosis) -> list[str]:
    """One table row per point with more than one core: its first suspect."""
    lines = [
        f"| {' | '.join(_COLUMNS)} |",
        f"|{'---|' * len(_COLUMNS)}",
    ]
    for point in diagnosis.points:
        if point.key.cores == 1:
            continue
        linear = point.judgement.efficiency
        cells = [point.key.load, point.key.filesystem, str(point.key.cores)]
        cells.append("" if linear is None else f"{100 * linear:.0f}%")
        first = next(iter(point.suspects), None)
        if first is None:
            ruled_out = point.triage.sees_spinning
            seen = "no contention" if ruled_out else "no lock wait (no cpu profile)"
            cells += [seen, "", "", "", ""]
        else:
            shares = (first.share, first.blocked, first.spinning)
            cells += [first.name.object, *(f"{100 * s:.1f}%" for s in shares), first.evidence]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _write_markdown(diagnosis: Diagnosis, path: Path) -> None:
    text = "".join(f"{printable(line)}\n" for line in _markdown(diagnosis))
    if str(path) == "-":
        typer.echo(text, nl=False)
        return
    try:
        write_named(path, text)
    except OSError as error:
        raise FscaleError(f"cannot write {path}: {error.strerror}; give another file") from None


def _write_flames(diagnosis: Diagnosis, directory: Path) -> None:
    try:
        _draw_flames(diagnosis, Folder(directory))
    except OSError as error:
        raise FscaleError(
            f"cannot write flame graphs to {directory}: {error.strerror}; give another directory"
        ) from None


def _draw_flames(diagnosis: Diagnosis, folder: Folder) -> None:
    for point in diagnosis.points:
        cores = plural(point.key.cores, "core")
        title = f"{point.key.load} {point.key.filesystem}, {cores}"
        if point.triage.cpu is not None and point.triage.cpu.samples.total:
            drawn = flame.svg(flame.fold_cpu(point.triage.cpu), f"{title}: on CPU")
            folder.write(flame_name(point.key, "cpu"), drawn)
        if point.triage.offcpu is not None and point.triage.offcpu.stacks.total():
            drawn = flame.svg(flame.fold_offcpu(point.triage.offcpu), f"{title}: off CPU")
            folder.write(flame_name(point.key, "offcpu"), drawn)


def _as_json(diagnosis: Diagnosis, results: Results) -> dict[str, Any]:
    return {
        "schema": 1,
        "kernel": results.run.machine.kernel,
        "points": [_point_json(point) for point in diagnosis.points],
        "table": [asdict(row) for row in table(diagnosis, results)],
        "costs": [asdict(cost) for cost in diagnosis.costs],
        "skipped": diagnosis.warnings,
    }


def _point_json(point: Diagnosed) -> dict[str, Any]:
    judged = point.judgement
    return {
        "key": point.key.model_dump(mode="json", exclude={"profile", "repetition"}),
        "shape": judged.shape.value,
        "since_cores": judged.since,
        "efficiency": judged.efficiency,
        "cause": judged.cause.name.object if judged.cause else None,
        "confidence": judged.confidence.value if judged.confidence else None,
        "sentence": judged.sentence,
        "suspects": [_suspect_json(s) for s in point.triage.suspects],
        "counts_per_operation": point.triage.counts,
        "hardware": point.triage.hardware,
        "cpu_share": point.triage.cpu.cpu_share if point.triage.cpu else None,
        "notes": point.triage.notes,
        "lock_classes": [asdict(lock) for lock in point.triage.lock_classes],
        "preempted": point.triage.preempted,
        "looked": point.triage.recorded_share,
        "profiles": point.triage.profiles,
        "unreadable": point.triage.unreadable,
    }


def _suspect_json(suspect: Suspect) -> dict[str, Any]:
    rule = suspect.name.rule
    return {
        "object": suspect.name.object,
        "scope": suspect.name.scope,
        "sort": suspect.sort,
        "kind": suspect.kind,
        "named_by": suspect.by.value,
        "addressed": suspect.addressed,
        "elsewhere": suspect.name.elsewhere.object if suspect.name.elsewhere else None,
        "table3": rule.table3 if rule else None,
        "note": rule.note if rule else None,
        "share": suspect.share,
        "blocked": suspect.blocked,
        "spinning": suspect.spinning,
        "waits": suspect.count,
        "mean_us": suspect.mean_us,
        "max_us": suspect.max_us,
        "one_in": suspect.one_in,
        "error": suspect.error,
        "addresses": suspect.addresses,
        "histogram_ns": suspect.histogram,
        "callers": [{"stack": list(frames), "share": share} for frames, share in suspect.callers],
    }


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("locks", epilog=_EPILOG)(_locks)
