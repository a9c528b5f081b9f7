# SPDX-License-Identifier: GPL-2.0-only
"""Comparing kernels: what a side is, the order of boots, and how boots become one run."""

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, cast

import pytest
from rich.console import Console

from fscale.ab import guests as ab
from fscale.ab.guest_boots import GuestBoots
from fscale.ab.guest_run import execute
from fscale.ab.guests import GuestPlan, GuestSide
from fscale.ab.local import turns
from fscale.ab.loop import Progress
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.model.errors import FscaleError
from fscale.model.results import KernelBuild
from fscale.model.store import Store
from fscale.model.variant import parse
from fscale.vm.place import Job
from fscale.vm.steps import Steps
from tests.support import synthetic

STEPS = Steps(Console(file=StringIO()))


def test_boots_are_interleaved_and_each_is_made_once():
    rounds = [turns(f"5 boots {first}", first) for first in range(1, 41, 2)]
    orders = ["".join(side for side, _ in four) for four in rounds]
    assert set(orders) == {"ABBA", "BAAB"}
    boots = [boot for four in rounds for boot in four]
    assert Counter(boots) == {(s, r): 1 for s in "AB" for r in range(1, 41)}


def boot(
    output: Path,
    side: str,
    repetition: int,
    speed: float,
    revision: str | None = None,
    stood_still: int = 0,
    build: str = "#1 SMP",
) -> None:
    store = Store(ab.boot_directory(output, side, repetition))
    guest = {"label": "emulated: ratios only", "release": side, "stood_still": stood_still}
    machine = synthetic.machine(
        1,
        kernel={"A": "6.1", "B": "6.12"}[side[0]],
        build=KernelBuild(version=build, id=None, taint=0, debug=[], debug_from="signs"),
        boots=[f"{side}{repetition}"],
        guest=guest,
    )
    run = synthetic.run(
        revision=revision,
        suite={"filesystems": ["ext4"]},
        machine=machine,
        versions={"kernel": machine.kernel},
        planned_cells=1,
    )
    store.save_run(run)
    key = synthetic.key(workload="MWCL")
    store.save_cell(synthetic.bare_cell(key, speed))


BOTH = {"A": "kernel:6.1", "B": "kernel:6.12"}


def measured(output: Path, repetitions: int = 0, **given: Any) -> Progress:
    """What comes of boots that are there already; FscaleError where another one is needed."""
    return execute(boots_of(output, repetitions, **given), 1e6)


def boots_of(output: Path, repetitions: int = 0, **given: Any) -> GuestBoots:
    plan = GuestPlan(
        sides={name: GuestSide(parse(text), cast("Any", None)) for name, text in BOTH.items()},
        emulator=cast("Any", None),
        arguments=["quick"],
        files={},
        output=output,
        seed=1,
        settings=Settings(),
        repetitions=repetitions,
        timeout=1,
    )
    return GuestBoots(replace(plan, **given), STEPS)


def made(output: Path, repetitions: int, speed: Callable[[str, int], float], **given: Any) -> None:
    for number in range(1, repetitions + 1):
        for side in "AB":
            boot(output, side, number, speed(side, number), **given)


def test_boots_become_one_paired_run_that_compare_reads(tmp_path):
    made(tmp_path, 4, lambda side, number: {"A": 100.0, "B": 200.0}[side] + number)
    measured(tmp_path, 4)
    sides = open_sides(tmp_path, None)
    assert sides.interleaved
    assert sorted(sides.base_results.run.machine.boots) == [
        f"{s}{n}" for s in "AB" for n in range(1, 5)
    ]
    assert (sides.base.label, sides.new.label) == ("kernel:6.1", "kernel:6.12")
    assert sorted(cell.ops for cell in sides.base_cells) == [101, 102, 103, 104]
    assert sorted(cell.ops for cell in sides.new_cells) == [201, 202, 203, 204]
    assert {cell.key.repetition for cell in sides.new_cells} == {1, 2, 3, 4}
    run = Store(tmp_path).load_run()
    assert run is not None
    assert run.state == "complete"
    assert run.versions == {"kernel": "6.1", "kernel of B": "6.12"}
    assert run.machine.guest is not None
    assert run.machine.guest["B"]["release"] == "B"
    assert run.warnings == []
    assert run.suite["arguments"] == ["quick"]


def test_boots_go_on_until_the_data_decide(tmp_path):
    noise = random.Random(1)
    made(
        tmp_path, 20, lambda side, _: {"A": 100.0, "B": 80.0}[side] * math.exp(noise.gauss(0, 0.01))
    )
    progress = measured(tmp_path)
    (done,) = progress.done.values()
    assert done == progress.looks.whole[0] < 20
    (judgement,) = compare(open_sides(tmp_path, None), Settings(metrics=("throughput",))).judgements
    assert judgement.verdict == "slower"
    # The same call again measures nothing, and says the same.
    assert measured(tmp_path).done == progress.done


def test_a_guest_measures_no_cell_again_outside_of_its_turn(tmp_path):
    plan = boots_of(tmp_path).plan
    argv = plan.job(plan.sides["A"], tmp_path, 1).argv
    assert argv[argv.index("--remeasure") + 1] == "0"


def test_what_guests_say_is_not_on_the_output_of_the_comparison(tmp_path, monkeypatch, capfdbinary):
    def run(guest: object, emulator: object, job: Job, steps: object, output: IO[bytes]) -> Any:
        output.write(b"a table\n")
        output.flush()
        name = job.output.name if job.output else ""
        boot(tmp_path, name[0], int(name[1:]), 100.0)
        return SimpleNamespace(end="finished")

    monkeypatch.setattr("fscale.vm.guest.run", run)
    measured(tmp_path, 2)
    said, told = capfdbinary.readouterr()
    assert (said, told.count(b"a table")) == (b"", 4)


def test_a_dry_run_names_the_boots_that_are_made(tmp_path, monkeypatch):
    done = []

    def run(guest: object, emulator: object, job: Job, *_: object, **__: object) -> Any:
        assert job.output
        done.append(job)
        boot(tmp_path, job.output.name[0], int(job.output.name[1:]), 100.0)
        return SimpleNamespace(end="finished")

    monkeypatch.setattr("fscale.vm.guest.run", run)
    planned = [one.job for one in boots_of(tmp_path, 2).first_round()]
    assert not list(tmp_path.iterdir())
    measured(tmp_path, 2)
    assert planned == done
    assert len(done) == 4


def test_another_comparison_is_not_gone_on_with(tmp_path):
    made(tmp_path, 4, lambda *_: 100.0)
    measured(tmp_path, 4)
    with pytest.raises(FscaleError, match="another comparison: arguments was"):
        measured(tmp_path, 4, arguments=["smoke"])


def test_a_comparison_says_how_figures_of_guests_are_to_be_read(tmp_path):
    made(tmp_path, 8, lambda _, number: 100.0 + number)
    measured(tmp_path, 8)
    comparison = compare(open_sides(tmp_path, None), Settings())
    assert comparison.warnings == ["measured in a guest (emulated: ratios only)"]


def test_boots_of_several_revisions_are_told(tmp_path):
    for number, revision in ((1, "old"), (2, "new")):
        for side in "AB":
            boot(tmp_path, side, number, 1.0, revision)
    measured(tmp_path, 2)
    run = Store(tmp_path).load_run()
    assert run is not None
    (warning,) = run.warnings
    assert warning.endswith(" revisions of fscale: old, new")


def test_boots_that_stood_still_are_told(tmp_path):
    for number in (1, 2):
        for side in "AB":
            boot(tmp_path, side, number, 1.0, stood_still=number - 1)
    measured(tmp_path, 2)
    run = Store(tmp_path).load_run()
    assert run is not None and run.machine.guest is not None
    assert run.machine.guest["stood_still"] == 2
    assert run.warnings == ["2 boots stalled and were repeated"]


def test_a_kernel_that_was_built_anew_does_not_go_on_with_a_comparison(tmp_path):
    boots = [("A", 1), ("B", 1), ("B", 2), ("A", 2)]
    for (side, repetition), build in zip(boots, ("#1", "#7", "#8", "#1"), strict=True):
        boot(tmp_path, side, repetition, 1.0, build=build)
    ab.refuse_other_builds(tmp_path, boots[:2])
    with pytest.raises(FscaleError, match=r"side B .* #7 \(None\) and #8 .*new --output"):
        ab.refuse_other_builds(tmp_path, boots)
