# SPDX-License-Identifier: GPL-2.0-only
"""The cost of counting words: CPU seconds of the emulator, with and without, boots in turn.

.venv/bin/python -m tests.validation.gate_time --output results/validation/gate-time
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fscale.model.results import Cell
from fscale.sim import campaign, sweep
from fscale.sim.plan import fixed
from fscale.vm.steps import Steps


def boot(given: argparse.Namespace, seed: int, words: int) -> list[Cell]:
    """Simulate a boot as the gate does."""
    prepared = sweep.prepare(
        sweep.Sweep(
            filesystems=given.filesystems.split(","),
            workloads=given.workloads.split(","),
            cores=[4],
            output=given.output / f"{seed}-{words}",
            seed=seed,
            windows=fixed(5, 512),
            memory_mib=2048,
        ),
        Steps(Console(stderr=True)),
    )
    prepared.parameters["words"] = words
    return campaign.run(prepared, 1)


def seconds(cells: Sequence[Cell], modes: Sequence[str]) -> float:
    """CPU seconds of QEMU in some modes of the plugin, user and system."""
    return sum(
        cell.simulation.cpu_seconds.get(mode, 0.0)
        for cell in cells
        if cell.simulation
        for mode in modes
    )


def main() -> None:
    """Boot and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filesystems", default="ext4,tmpfs")
    parser.add_argument("--workloads", default="DRBL,DWOL,MRPL,MWCL,MWUL,MWRL")
    parser.add_argument("--boots", type=int, default=3)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    for name, modes in (("windows", ["detailed"]), ("all", ["fast", "ordered", "detailed"])):
        ratios = []
        for seed in range(1, given.boots + 1):
            # A boot that is done is read.
            without, counted = (seconds(boot(given, seed, words), modes) for words in (0, 1))
            ratios.append(counted / without)
            print(f"{name}, boot {seed}: {without:.1f} s, {counted:.1f} s with words", flush=True)
        print(f"{name}: {statistics.median(ratios):.3f} times, in {len(ratios)} pairs of boots")


if __name__ == "__main__":
    main()
