# SPDX-License-Identifier: GPL-2.0-only
"""`fscale predict`: predicts throughput at more cores than were measured."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from fscale.analysis.numbers import rate
from fscale.analysis.prediction import facts
from fscale.analysis.prediction.curves import predict, starts
from fscale.analysis.prediction.model import StoredPrediction
from fscale.analysis.prediction.rule import LEVEL
from fscale.analysis.prediction.stored import keep, stored
from fscale.analysis.reader import Results, load
from fscale.analysis.tables import predictions
from fscale.analysis.tables.text import to_csv, to_json
from fscale.commands.options.chosen import ChosenFilesystems, ChosenWorkloads, choose
from fscale.commands.options.formats import put
from fscale.commands.options.kinds import output_file
from fscale.commands.options.shared import JsonFlag
from fscale.commands.options.simulated import core_counts
from fscale.commands.options.writable import TERMINAL
from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.tables import Column, Row, Table
from fscale.model.terminal import only_ascii, say, terminal
from fscale.runner import microbench
from fscale.sim import machine
from fscale.vm.kernel import ALIASES

_EPILOG = """
More examples:

    fscale predict results/two --cores 16,80 --dry-run    # prints the command that simulates
    fscale predict results/two --simulated results/sim --workload MWCL --json
    fscale predict results/two --simulated results/sim --output predicted.csv
"""
_MACHINES = ("paper", "server")
_NEWEST = "sid"
_USUAL = (16, 32, 80)
"""core counts of a simulation to be made"""
_COLUMNS = (
    *(Column("curve"), Column("cores", right=True), Column("speed-up", right=True)),
    *(Column("interval", right=True), Column("per second", 1, right=True)),
    *(Column("interval", 2, right=True, label=""), Column("limited by", 3)),
)


def _predict(
    run: Annotated[Path, typer.Argument(help="Results directory of a run of few cores.")],
    cores: Annotated[
        str | None,
        typer.Option(
            metavar="N,...",
            help="Core counts to predict, separated by commas: numbers or ranges such as 8-32:8. "
            "Default: those of the simulation; without one 16,32,80.",
        ),
    ] = None,
    simulated: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Results directory of a simulation of the same curves (`fscale simulate`).",
        ),
    ] = None,
    workload: ChosenWorkloads = None,
    fs: ChosenFilesystems = None,
    json: JsonFlag = False,
    output: Annotated[
        Path | None,
        output_file("Write all columns to this file: CSV, or JSON with --json."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the command that makes the simulation, and exit."),
    ] = False,
) -> None:
    """Predict throughput at more cores than were measured, from a run and a simulation.

    Example: fscale predict results/two --cores 16,32,80 --simulated results/sim

    The simulated curve is scaled to meet the measured one at the most measured cores. An interval
    is as wide as earlier predictions erred: on the measured machine as far as it has the cores, on
    another machine beyond. Where simulation and measurement disagree about the measured cores by
    more than earlier ones, it says that it cannot tell. docs/results/predicted-curves.md has the
    errors, also those of simpler predictors. The predictions are kept in predictions.json of RUN,
    in the place of earlier ones; `show`, `report` and `export --table predictions` read it.
    """
    results = choose(load(run), workload, fs)
    facts.check(results)
    counts = None if cores is None else _more(results, core_counts(cores))
    if dry_run:
        say(_simulate(results, counts))
        return
    if simulated is None:
        raise FscaleError(
            "no simulation is given; make one, and give it as --simulated: "
            f"{_simulate(results, counts)}"
        )
    simulation = load(simulated)
    facts.check_simulation(simulation)
    found = predict(results, simulation, counts)
    for line in facts.refusals(found.refused):
        say(f"note: {line}", error=True)
    if not found.made:
        raise FscaleError(
            f"no curve of {run} can be predicted from {simulated}; this simulates what is "
            f"missing: {_simulate(results, counts)}"
        )
    file = stored(results, simulation, found.made)
    try:
        keep(results, file)
    except OSError as error:
        say(f"note: the predictions are not kept in {run}: {error.strerror}", error=True)
    if json or output is not None:
        rows = predictions.rows(results.path.name, file, file.points)
        text = (
            to_json(predictions.COLUMNS, rows, results.missing)
            if json
            else to_csv(predictions.COLUMNS, rows)
        )
        put(TERMINAL if output is None else output, text)
        return
    console = terminal(ascii_only=only_ascii())
    for note in facts.notes(results, simulation, found.made):
        console.print(note)
    pairs = zip(found.made, file.points, strict=True)
    table = [Row([made.start.name, *_cells(one)]) for made, one in pairs]
    console.print(Table(_COLUMNS, table))
    console.print(
        f"intervals hold about {LEVEL:.0%} of earlier predictions; rates are those of cores as "
        "fast as the measured ones"
    )
    if limited := [one for one in found.made if one.limit]:
        console.print(f"the measurement limits {len(limited)} of {len(found.made)}; measure again:")
        say(facts.measure(limited))


def _more(results: Results, counts: Sequence[int]) -> list[int]:
    """The core counts in order; FscaleError if the run measured as many cores."""
    most = facts.most_cores(results)
    if min(counts) <= most:
        raise FscaleError(
            f"--cores {min(counts)}: {results.path} measured up to {most}; give more than that"
        )
    return sorted(set(counts))


def _simulate(results: Results, counts: Sequence[int] | None) -> str:
    """The command that simulates the curves of a run."""
    known = {load.descriptor.id for load in microbench.find(paths.BENCH)}
    able = [start for start in starts(results) if start.refusal is None]
    curves = [start for start in able if start.key.workload in known]
    if not curves:
        raise FscaleError(
            f"no workload of {results.path} can be simulated, as applications and loads of your "
            "own cannot; `fscale list workloads` lists those that can"
        )
    kernel = ALIASES.get(".".join(results.run.machine.kernel.split(".")[:2]), _NEWEST)
    asked = _USUAL if counts is None else counts
    return facts.simulate(curves, asked, kernel, _machine(max(facts.most_cores(results), *asked)))


def _machine(most: int) -> str:
    """The first of fscale's machines that has so many cores; FscaleError if none has."""
    cores = {name: machine.load(name).cores for name in _MACHINES}
    for name, count in cores.items():
        if count >= most:
            return name
    raise FscaleError(
        f"{most} cores are to be simulated, and the machine {name} has {count}; give fewer, or "
        "describe a larger machine (docs/reference/machine-keys.md) and simulate it"
    )


def _cells(one: StoredPrediction) -> Iterator[str]:
    yield str(one.key.cores)
    if one.speedup and one.rate:
        yield f"{one.speedup.value:.3g}"
        yield f"{'' if one.recorded else '~'}{one.speedup.low:.3g} to {one.speedup.high:.3g}"
        yield rate(one.rate.value)
        yield f"{rate(one.rate.low)} to {rate(one.rate.high)}"
        yield one.limited_by
        return
    yield "cannot tell"
    yield from ("", "", "")
    yield one.reason


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict", epilog=_EPILOG)(_predict)
