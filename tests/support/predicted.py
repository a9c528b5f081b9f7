# SPDX-License-Identifier: GPL-2.0-only
"""A measured run of two cores and a simulation of more, with made-up rates."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fscale.analysis.prediction.curves import predict
from fscale.analysis.prediction.stored import keep, stored
from fscale.analysis.reader import load
from fscale.model.results import Cell
from fscale.model.simulation import Simulation
from tests.support import synthetic
from tests.support.simulated_cells import window

KERNEL = "6.12.1"
RATES = {1: (90.0, 100.0, 110.0), 2: (149.0, 150.0, 151.0)}
SIMULATED = {1: 10.0, 2: 16.0, 16: 64.0, 80: 32.0}


def measured_cells(rates: Mapping[int, tuple[float, ...]] = RATES, **key: Any) -> list[Cell]:
    """Cells of MWCL on tmpfs unless `key` says otherwise; a repetition for each rate."""
    fields = {"workload": "MWCL", "filesystem": "tmpfs", "medium": "none"} | key
    return [
        synthetic.cell(synthetic.key(repetition, cores=cores, **fields), rate)
        for cores, found in rates.items()
        for repetition, rate in enumerate(found, 1)
    ]


def simulated_cells(rates: Mapping[int, float] = SIMULATED, **key: Any) -> list[Cell]:
    """The same curve, simulated; one boot per point."""
    windows = [window(10, 1e-3, instructions=1, cycles=1, transfers={})]
    simulation = Simulation(seed=1, windows=windows, lines=[], host_seconds=1)
    each = {cores: (rate,) for cores, rate in rates.items()}
    return [
        cell.model_copy(update={"simulation": simulation}) for cell in measured_cells(each, **key)
    ]


def write_measured(directory: Path, cells: list[Cell], cpus: int = 2, **changes: Any) -> Path:
    """Write a measured run."""
    machine = synthetic.machine(cpus, kernel=KERNEL)
    return synthetic.write_run(directory, cells, **({"machine": machine} | changes))


def write_simulated(
    directory: Path, cells: list[Cell], kernel: str = KERNEL, **changes: Any
) -> Path:
    """Write a simulated run; `changes` are of its machine."""
    guest = {"accelerator": "simulated"}
    machine = synthetic.machine(80, kernel=kernel, guest=guest, **changes)
    return synthetic.write_run(directory, cells, machine=machine)


def predict_in(run: Path, simulated: Path) -> Path:
    """Keep the predictions of a run in its directory, and return their file."""
    results, simulation = load(run), load(simulated)
    keep(results, stored(results, simulation, predict(results, simulation).made))
    return run / "predictions.json"
