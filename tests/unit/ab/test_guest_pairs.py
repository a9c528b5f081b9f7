# SPDX-License-Identifier: GPL-2.0-only
"""Pairs of boots until it is decided, with boots that are made up."""

import random
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from typer.testing import CliRunner

from fscale.ab import guest_pairs, guest_plan
from fscale.ab.guest_pairs import GuestPairs
from fscale.ab.guest_plan import make
from fscale.ab.guest_run import execute
from fscale.ab.guests import GuestPlan, GuestSide
from fscale.ab.loop import Progress
from fscale.analysis.compare import wording
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.formats import mail
from fscale.analysis.metrics import CPU_EFFICIENCY, INSTRUCTIONS, THROUGHPUT
from fscale.analysis.report.comparison_page import page
from fscale.cli import app
from fscale.commands.bisect import ABORT, BAD, GOOD, SKIP
from fscale.model.bench import CpuTimes
from fscale.model.catalogue import load_suite
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey, Slice
from fscale.model.store import Store
from fscale.model.variant import parse
from fscale.runner.request import Request
from fscale.vm.guest import GuestError, GuestOutcome
from fscale.vm.kernel import Kernel
from fscale.vm.qemu import Guest
from fscale.vm.request import GuestRequest
from fscale.vm.steps import Steps
from fscale.vm.tasks import BootFailed, GuestJob
from tests.support import synthetic
from tests.support.synthetic import cell as a_cell
from tests.unit.ab.test_guest_boots import boot

STEPS = Steps(Console(file=StringIO()))
QUICK = load_suite(Path("quick"))


class Boots:
    """In the place of guests: a cell of each workload; `changes` of B in time, in instructions."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, changes: dict[str, tuple[float, float]]
    ) -> None:
        self.changes = changes
        self.made: list[tuple[int, str, list[str]]] = []
        self.broken: set[tuple[str, int]] = set()
        self.rng = random.Random(1)
        boots = self
        monkeypatch.setattr(
            GuestPairs, "measured", lambda pairs, *given: boots.cells(pairs.plan, *given)
        )

    def cells(
        self,
        plan: GuestPlan,
        number: int,
        ending: str,
        counts: bool,
        wanted: Callable[[CellKey], bool],
    ) -> list[Cell]:
        done, found = [], []
        for side in "AB":
            boot(plan.output, side + ending, number, 1.0)
        for workload, change in self.changes.items():
            key = synthetic.key(number, workload=workload, duration=2.0 if counts else 5.0)
            if not wanted(key):
                continue
            done.append(workload)
            for side in "AB":
                cell = a_cell(key.model_copy(update={"side": side}), 1000.0)
                cell.cpu = None
                if (workload, number) in self.broken and side == "B":
                    cell.status, cell.reason = "error", "ENOSPC"
                factor = 1 + change[counts] if side == "B" else 1.0
                if counts:
                    noise = self.rng.gauss(0, 0.0005)
                    cell.ops, cell.seconds = 1_000_000 * factor * (1 + noise), 1.0
                else:
                    cell.slices = [self._turn(block // 2, factor) for block in range(20)]
                found.append(cell)
        self.made.append((number, ending, done))
        return found

    def _turn(self, block: int, factor: float) -> Slice:
        ops = round(100_000 * factor * (1 + self.rng.gauss(0, 0.01)))
        return Slice(block=block, ops=ops, seconds=0.1, cpu_seconds=0.1)


def measure(plan: GuestPlan, seconds: float, steps: Steps) -> Progress:
    return execute(GuestPairs(plan, steps), seconds)


def pairs_of(progress: Progress) -> int:
    return max(progress.done.values())


def plan_of(output: Path, **given: Any) -> GuestPlan:
    sides = {
        name: GuestSide(parse(text), cast("Any", None))
        for name, text in (("A", "kernel:6.1"), ("B", "kernel:6.12"))
    }
    usual: dict[str, Any] = {
        "settings": Settings(margin=0.02, pause=0),
        "repetitions": 0,
        "timeout": 1.0,
        "seed": 1,
        "arguments": ["quick"],
        "files": {},
    }
    return GuestPlan(sides=sides, emulator=cast("Any", None), output=output, **(usual | given))


def verdicts(output: Path, settings: Settings | None = None) -> dict[tuple[str, str], str]:
    comparison = compare(open_sides(output, None), settings or Settings(margin=0.02, pause=0))
    return {(j.subject.workload, j.metric): j.verdict for j in comparison.judgements}


def test_a_change_is_decided_after_few_pairs_in_time_and_in_instructions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    boots = Boots(monkeypatch, {"MWCL": (-0.06, -0.05), "DRBL": (0.0, 0.0)})
    state = measure(plan_of(tmp_path), 600, STEPS)
    assert pairs_of(state) <= 6
    assert state.open == []
    assert boots.made[0] == (1, "", ["MWCL", "DRBL"])
    assert boots.made[1] == (1, "-counted", ["MWCL", "DRBL"])
    found = verdicts(tmp_path)
    assert {found["MWCL", metric] for metric in (THROUGHPUT, INSTRUCTIONS)} == {"slower"}
    assert {found["DRBL", metric] for metric in (THROUGHPUT, INSTRUCTIONS)} == {"same"}
    run = Store(tmp_path).load_run()
    assert run is not None and run.state == "complete"


def test_the_margins_that_were_used_are_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Boots(monkeypatch, {"MWCL": (-0.06, -0.05)})
    measure(plan_of(tmp_path), 600, STEPS)
    comparison = compare(open_sides(tmp_path, None), Settings())
    used = {(j.margin, wording.method(j)) for j in comparison.judgements}
    assert used == {(0.02, "in slices"), (0.01, "counted")}
    for said in (mail.render(comparison), page(comparison, open_sides(tmp_path, None))):
        assert "2% in slices" in " ".join(said.split())
        assert "margin 5%" not in said
    (pairs,) = {j.pairs for j in comparison.judgements}
    ways = {wording.measured(j) for j in comparison.judgements}
    assert ways == {f"{pairs} pairs in slices", f"{pairs} pairs counted"}


def test_fewer_operations_of_an_instruction_are_more_instructions_of_an_operation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Boots(monkeypatch, {"MWCL": (0.0, -0.5)})
    measure(plan_of(tmp_path, repetitions=4), 600, STEPS)
    comparison = compare(open_sides(tmp_path, None), Settings())
    (judgement,) = [j for j in comparison.judgements if j.metric == INSTRUCTIONS]
    # A second is 500 million instructions, and a million operations.
    assert judgement.base.median == pytest.approx(500, rel=0.01)
    assert judgement.ratio == pytest.approx(2, rel=0.01)
    assert judgement.verdict == "slower"


@pytest.mark.slow
def test_what_is_decided_is_not_booted_for_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Near the edge of the margin nothing is decided for long.
    boots = Boots(monkeypatch, {"MWCL": (-0.5, -0.5), "DRBL": (-0.016, 0.0)})
    state = measure(plan_of(tmp_path), 600, STEPS)
    assert pairs_of(state) > 4
    assert boots.made[-1] == (pairs_of(state), "-counted", ["DRBL"])


@pytest.mark.parametrize(
    ("metrics", "endings"),
    [(("throughput",), {""}), (("count",), {""}), (("throughput", "count"), {"", "-counted"})],
)
def test_only_what_is_judged_is_booted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, metrics: Any, endings: set[str]
) -> None:
    boots = Boots(monkeypatch, {"MWCL": (-0.3, -0.3)})
    settings = Settings(margin=0.02, metrics=metrics)
    measure(plan_of(tmp_path, settings=settings), 600, STEPS)
    assert {ending for _, ending, _ in boots.made} == endings
    assert set(verdicts(tmp_path, settings).values()) == {"slower"}


@pytest.mark.slow
def test_a_search_for_the_bad_commit_ends_as_soon_as_something_is_slower(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changes = {"MWCL": (-0.3, -0.3), "DRBL": (-0.016, 0.0)}
    Boots(monkeypatch, changes)
    assert pairs_of(measure(plan_of(tmp_path / "all"), 600, STEPS)) > 4
    Boots(monkeypatch, changes)
    assert pairs_of(measure(plan_of(tmp_path / "first", bisecting=True), 600, STEPS)) == 4


@pytest.mark.parametrize(("seconds", "told"), [(0.15, True), (60.0, False)])
def test_too_little_time_for_a_judgement_is_told_after_the_first_pair(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: float, told: bool
) -> None:
    boots = Boots(monkeypatch, {"MWCL": (0.0, 0.0)})

    def slow(pairs: GuestPairs, *given: Any) -> list[Cell]:
        time.sleep(0.06)
        return boots.cells(pairs.plan, *given)

    monkeypatch.setattr(GuestPairs, "measured", slow)
    said = StringIO()
    state = measure(plan_of(tmp_path), seconds, Steps(Console(file=said)))
    assert state.out_of_time is told
    assert ("needs 4 pairs" in said.getvalue()) is told


def test_a_comparison_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    boots = Boots(monkeypatch, {"MWCL": (-0.016, 0.0)})
    measure(plan_of(tmp_path, repetitions=4), 600, STEPS)
    before = {path: path.read_bytes() for path in (tmp_path / "cells").iterdir()}
    measure(plan_of(tmp_path, repetitions=5), 600, STEPS)
    assert [number for number, ending, _ in boots.made if not ending] == [1, 2, 3, 4, 5]
    assert {path: path.read_bytes() for path in before} == before
    assert len(list((tmp_path / "cells").iterdir())) == 10
    with pytest.raises(FscaleError, match=r"another comparison: arguments was .*quick.* and is"):
        measure(plan_of(tmp_path, arguments=["smoke"]), 600, STEPS)


def test_a_point_that_fails_is_given_up_and_the_other_one_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    boots = Boots(monkeypatch, {"MWCL": (-0.3, -0.3), "DRBL": (0.0, 0.0)})
    boots.broken = {("MWCL", 1)}
    state = measure(plan_of(tmp_path), 600, STEPS)
    assert "ENOSPC" in next(iter(state.given_up.values()))
    assert boots.made[2] == (2, "", ["DRBL"])
    cells = {cell.key.side: cell for cell in state.cells if cell.key.workload == "MWCL"}
    assert (cells["A"].status, cells["B"].status) == ("invalid", "error")


def test_a_failure_of_a_counting_guest_is_one_of_the_point(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    boots = Boots(monkeypatch, {"MWCL": (0.0, 0.0), "DRBL": (0.0, 0.0)})

    def failing(pairs: GuestPairs, *given: Any) -> list[Cell]:
        found = boots.cells(pairs.plan, *given)
        for cell in found:
            if given[2] and cell.key.side == "A" and cell.key.workload == "MWCL":
                cell.status, cell.reason = "error", "EIO"
        return found

    monkeypatch.setattr(GuestPairs, "measured", failing)
    state = measure(plan_of(tmp_path), 600, STEPS)
    assert "in a guest that counts instructions: EIO" in next(iter(state.given_up.values()))


def test_a_guest_that_idles_counts_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    boots = Boots(monkeypatch, {"DWSL": (0.0, 0.0)})

    def idle(pairs: GuestPairs, *given: Any) -> list[Cell]:
        found = boots.cells(pairs.plan, *given)
        for cell in found:
            cell.cpu = CpuTimes(user=1, system=6, idle=3, iowait=0, irq=0, softirq=0, steal=0)
        return found

    monkeypatch.setattr(GuestPairs, "measured", idle)
    measure(plan_of(tmp_path, repetitions=4), 600, STEPS)
    assert verdicts(tmp_path).keys() == {("DWSL", m) for m in (THROUGHPUT, CPU_EFFICIENCY)}
    run = Store(tmp_path).load_run()
    assert run is not None
    (warning,) = run.warnings
    assert re.match(r"DWSL: .* idle for 30%", warning)


def test_the_time_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Boots(monkeypatch, {"MWCL": (-0.016, 0.0)})
    clock = iter(range(0, 100_000, 30))
    monkeypatch.setattr("fscale.ab.loop.time.monotonic", lambda: next(clock))
    state = measure(plan_of(tmp_path), 600, STEPS)
    assert state.out_of_time
    assert 1 < pairs_of(state) < 10


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"options": GuestRequest(deterministic=True)}, "leave --deterministic out"),
        ({"arguments": ["quick", "--duration=3"]}, "leave --duration out"),
        ({"repetitions": 3}, "3 pairs are too few"),
        ({"suite": QUICK.model_copy(update={"workers_per_cpu": 2})}, "leave --slices out"),
        ({"suite": QUICK.model_copy(update={"workers_per_cpu": 3})}, "workers_per_cpu = 3"),
        (
            {"suite": QUICK.model_copy(update={"options": {"DRBL": {"rate": [0, 5]}}})},
            "arrive at a rate .* leave --slices out",
        ),
    ],
)
def test_what_makes_no_sense_in_slices_is_refused(
    tmp_path: Path, given: dict[str, Any], words: str
) -> None:
    usual: dict[str, Any] = {
        "arguments": ["quick"],
        "suite": QUICK,
        "files": {},
        "options": GuestRequest(),
        "output": tmp_path,
        "seed": 1,
        "settings": Settings(),
        "repetitions": 0,
        "steps": STEPS,
        "slices": True,
    }
    with pytest.raises(FscaleError, match=words):
        make(parse("kernel:6.1"), parse("kernel:6.12"), **(usual | given))


class Elsewhere:
    """In the place of machines that boot guests that count: B executes 5% more."""

    def __init__(self, slots: int, failing: str = "") -> None:
        self.slots = slots
        self.asked: list[list[str]] = []
        self._failing = failing

    def run(self, boots: Sequence[GuestJob]) -> None:
        self.asked.append([one.output.name for one in boots])
        for one in boots:
            assert one.guest.accelerator == "tcg-icount"
            side, number = one.output.name[0], int(one.output.name[1:])
            if one.output.name == self._failing:
                raise BootFailed(one.output.name)
            boot(one.output.parents[1], side, number, 1.0)
            key = synthetic.key(workload="MWCL")
            cell = a_cell(key, 1000.0)
            cell.cpu = None
            cell.ops, cell.seconds = (950_000 if side == "B" else 1_000_000) + number, 1.0
            Store(one.output).save_cell(cell)


COUNTS = Settings(margin=0.02, metrics=("count",))


def with_guests(made: GuestPlan) -> GuestPlan:
    kernel = Kernel("made up", "6.1", Path("vmlinux"), Path("initramfs"), None)
    sides = {name: replace(side, guest=Guest(kernel, 4)) for name, side in made.sides.items()}
    return replace(made, sides=sides)


def test_a_dry_run_names_the_boots_of_each_kind(tmp_path: Path) -> None:
    found = GuestPairs(with_guests(plan_of(tmp_path)), STEPS).first_round()
    assert [boot.output.name for boot in found] == ["A1", "B1", "A-counted1", "B-counted1"]
    assert [boot.guest.accelerator for boot in found] == ["tcg", "tcg", "tcg-icount", "tcg-icount"]
    assert not list(tmp_path.iterdir())


def measure_elsewhere(
    output: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, **given: Any
) -> Progress:
    monkeypatch.setattr(guest_pairs, "Elsewhere", lambda *_: elsewhere)
    usual = {"settings": COUNTS} | given
    made = with_guests(plan_of(output, **usual))
    pairs = GuestPairs(made, STEPS, cast("Any", elsewhere))
    return execute(pairs, 600)


@pytest.mark.parametrize(
    ("slots", "waves"),
    [(1, [2, 2, 2, 2]), (4, [4, 4]), (7, [8]), (100, [8])],
)
def test_as_many_pairs_boot_elsewhere_as_run_at_once_and_the_look_needs(
    slots: int, waves: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = Elsewhere(slots)
    state = measure_elsewhere(tmp_path, elsewhere, monkeypatch)
    assert pairs_of(state) == 4
    assert [len(wave) for wave in elsewhere.asked] == waves
    every = [name for wave in elsewhere.asked for name in wave]
    assert every == [f"{side}{n}" for n in range(1, 5) for side in "AB"]
    assert verdicts(tmp_path, COUNTS) == {("MWCL", INSTRUCTIONS): "slower"}


def test_boots_of_an_interrupted_call_are_not_repeated_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = Elsewhere(100, "B3"), Elsewhere(100)
    with pytest.raises(BootFailed):
        measure_elsewhere(tmp_path, first, monkeypatch, repetitions=5)
    assert pairs_of(measure_elsewhere(tmp_path, second, monkeypatch, repetitions=5)) == 5
    assert second.asked == [["B3", "A4", "B4", "A5", "B5"]]


@pytest.mark.parametrize("bisecting", [False, True])
def test_times_are_not_measured_elsewhere(
    bisecting: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = cast("Any", SimpleNamespace(accelerator="kvm"))
    sides = {name: replace(side, guest=guest) for name, side in plan_of(tmp_path).sides.items()}
    monkeypatch.setattr(guest_plan, "make_guests", lambda *_, **__: (sides, None))
    with pytest.raises(FscaleError, match="--on"):
        make(
            parse("kernel:6.1"), parse("kernel:6.12"), ["quick"], suite=QUICK,
            slices=True, files={},
            options=GuestRequest(), output=tmp_path, seed=1, settings=Settings(), repetitions=0,
            steps=STEPS, bisecting=bisecting, engine=cast("Any", Elsewhere(1)),
        )  # fmt: skip


KERNELS = ("--base", "kernel:6.1", "--new", "kernel:6.12")


def step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str, accelerator: str = "kvm"
) -> int:
    """The exit code of a step of `git bisect run`."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(tmp_path)]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.chdir(tmp_path)
    guest = cast("Any", SimpleNamespace(accelerator=accelerator))
    sides = {name: replace(side, guest=guest) for name, side in plan_of(tmp_path).sides.items()}
    monkeypatch.setattr(guest_plan, "make_guests", lambda *_, **__: (sides, None))
    return CliRunner().invoke(app, ["bisect", "--output", "out", *arguments]).exit_code


@pytest.mark.parametrize("change", [(-0.05, 0.0), (0.0, -0.05)])
def test_a_bad_commit_is_told_as_soon_as_it_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: tuple[float, float]
) -> None:
    # The other workload is undecided for long.
    boots = Boots(monkeypatch, {"MWCL": change, "DRBL": (-0.016, 0.0)})
    assert step(tmp_path, monkeypatch, *KERNELS) == BAD
    assert boots.made[-1][0] == 4


def test_a_good_commit_is_told_when_all_is_decided(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Boots(monkeypatch, {"MWCL": (0.0, 0.0)})
    assert step(tmp_path, monkeypatch, *KERNELS) == GOOD


@pytest.mark.parametrize(("counted", "code"), [(0.0, GOOD), (-0.05, BAD)])
def test_a_commit_is_told_by_counts_where_the_guests_are_emulated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, counted: float, code: int
) -> None:
    # By time it would be bad.
    boots = Boots(monkeypatch, {"MWCL": (-0.3, counted)})
    assert step(tmp_path, monkeypatch, *KERNELS, accelerator="tcg") == code
    assert {ending for _, ending, _ in boots.made} == {""}
    Boots(monkeypatch, {"MWCL": (-0.3, 0.0)})
    asked = ("--metric", "throughput", "--output", "timed")
    assert step(tmp_path, monkeypatch, *KERNELS, *asked, accelerator="tcg") == BAD


@pytest.mark.parametrize("accelerator", ["tcg", "kvm"])
def test_a_step_of_git_bisect_boots_guests_that_count_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, accelerator: str
) -> None:
    monkeypatch.setattr("fscale.commands.options.in_guest.engine_of", nullcontext)
    Boots(monkeypatch, {"MWCL": (-0.3, 0.0)})
    monkeypatch.setattr(guest_pairs, "Elsewhere", lambda *_: None)
    asked = (*KERNELS, "--on", "dask://node1:8786")
    # Under KVM a step measures times as well.
    assert step(tmp_path, monkeypatch, *asked, accelerator=accelerator) == (
        GOOD if accelerator == "tcg" else ABORT
    )


@pytest.mark.parametrize(
    "error",
    [
        GuestError(GuestOutcome("panic", None, 1.0, None, "BUG", None, Path("console.log"))),
        BootFailed("A1 on node7: BUG"),
    ],
    ids=["here", "elsewhere"],
)
def test_a_guest_that_panics_says_nothing_about_the_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: FscaleError
) -> None:
    def panics(*_: Any) -> list[Cell]:
        raise error

    monkeypatch.setattr(GuestPairs, "measured", panics)
    assert step(tmp_path, monkeypatch, *KERNELS) == SKIP
    assert step(tmp_path, monkeypatch, *KERNELS, "--dir", "/tmp") == ABORT


def test_a_step_of_git_bisect_here_measures_fresh_file_systems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Request] = []

    def measured(request: Request, *_: object) -> None:
        asked.append(request)
        raise FscaleError("that is all")

    monkeypatch.setattr("fscale.commands.bisect._measure", measured)
    for directory in (None, "/srv"):
        where = ["--dir", directory] if directory else []
        argv = ["--base", "ext4", "--new", "xfs", *where]
        assert step(tmp_path, monkeypatch, *argv) == ABORT
        assert asked[-1].directory == (Path(directory) if directory else None)
        assert asked[-1].output.parent == Path("out")
