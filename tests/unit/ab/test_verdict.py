# SPDX-License-Identifier: GPL-2.0-only
"""The paired run: sides, order, sequential stopping, budget and resumption, without a machine."""

import math
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from fscale.ab import loop, record
from fscale.ab.local import LocalSource
from fscale.ab.loop import Progress, Quiet, measure
from fscale.ab.plan import Plan
from fscale.ab.record import Looks
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.noise import measure_noise
from fscale.analysis.compare.sequential import WHOLE_STEP, resumed, schedule
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.cli import app
from fscale.commands.bisect import ABORT, BAD, GOOD, SKIP, verdict
from fscale.model import catalogue
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey
from fscale.model.store import Store
from fscale.model.variant import parse
from fscale.runner.session import Session
from tests.support import paired_plans
from tests.support.synthetic import cell, grid, write_run

SECONDS = 1e6


def test_sides() -> None:
    side = parse("ext4:mount=data=journal,commit=1:mkfs=-O ^has_journal -I 512")
    ext4 = catalogue.load_filesystem("ext4")
    changed = catalogue.load_filesystem(side.filesystem)
    assert changed.mount_options == [*ext4.mount_options, "data=journal", "commit=1"]
    device = changed.mkfs.index("{device}")
    assert changed.mkfs[device - 4 : device] == ["-O", "^has_journal", "-I", "512"]
    assert "/" not in parse("ext4:binary=/a/b").label
    assert parse("ext4:binary=/a/b").filesystem == "ext4"
    assert catalogue.load_filesystem(parse("ext4").filesystem) == ext4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ext4:mount=", "with a value"),
        ("ext4:mount=a:mount=b", "given twice"),
        ("ext4:mount=a b", "without blanks"),
        ("ext4:mkfs=-L 'x", "split"),
        ("../ext4", "is not the name"),
        ("ext4:data=journal", "number of partitions"),
    ],
)
def test_wrong_sides(text: str, says: str) -> None:
    with pytest.raises(FscaleError, match=says) as caught:
        parse(text)
    assert caught.value.code == 2


def test_a_side_that_cannot_be_changed_is_refused() -> None:
    with pytest.raises(FscaleError, match="no mkfs"):
        catalogue.load_filesystem(parse("tmpfs:mkfs=-q").filesystem)
    with pytest.raises(FscaleError, match="existing directory"):
        parse("ext4:mount=commit=1").refuse_existing()


class Machine:
    """In the place of a Session: rates by a function, and a log of what was asked for."""

    def __init__(self, store: Store, rate: Callable[[CellKey], float]) -> None:
        self.store = store
        self.rate = rate
        self.setup: Any = None
        self.log: list[CellKey] = []
        self.fails: Callable[[CellKey], bool] = lambda key: False
        self.measured: Callable[[], None] = lambda: None

    def cell(self, key: CellKey) -> Cell:
        assert self.setup == f"setup {key.side}"
        self.log.append(key)
        self.measured()
        done = cell(key, self.rate(key))
        if self.fails(key):
            done.status, done.reason = "error", "made to fail"
        self.store.save_cell(done)
        return done


def plan_of(
    directory: Path, workloads: list[str], repetitions: int, looks: tuple[int, ...], **more: str
) -> Plan:
    whole = dict.fromkeys(workloads)
    return paired_plans.plan_of(directory, whole, Settings(), Looks(looks), repetitions, **more)


def rates(
    change: dict[str, float], spread: float, loud: str | None = None
) -> Callable[[CellKey], float]:
    def rate(key: CellKey) -> float:
        noise = random.Random(key.id).gauss(0, 0.5 if key.workload == loud else spread)
        level = 1 - change.get(key.workload, 0) if key.side == "B" else 1
        return 1e5 * level * math.exp(noise)

    return rate


def measured(plan: Plan, machine: Machine, seconds: float = SECONDS) -> Progress:
    return measure(LocalSource(plan, cast("Session", machine)), plan.aim, seconds, Quiet())


def test_order_is_a_b_b_a_or_b_a_a_b(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["DRBL", "MWCL"], 40, ())
    machine = Machine(plan.store, rates({}, 0.01))
    measured(plan, machine)
    quads = [machine.log[i : i + 4] for i in range(0, len(machine.log), 4)]
    assert len(quads) == 2 * 20
    orders = ["".join(k.side or "" for k in quad) for quad in quads]
    assert set(orders) == {"ABBA", "BAAB"}
    assert 8 < orders.count("ABBA") < 32
    for quad in quads:
        assert len({k.workload for k in quad}) == 1
        assert sorted(k.repetition for k in quad) == sorted([quad[0].repetition] * 2 + [
            quad[3].repetition] * 2)  # fmt: skip


def test_decided_points_are_not_measured_any_more(tmp_path: Path) -> None:
    looks = schedule(0.01, 4, 60)
    plan = plan_of(tmp_path, ["DRBL", "MWCL"], 0, looks)
    # DRBL loses a third, which shows at once; MWCL is too noisy for any verdict.
    machine = Machine(plan.store, rates({"DRBL": 0.3}, 0.02, loud="MWCL"))
    progress = measured(plan, machine)
    counts = {w: sum(k.workload == w for k in machine.log) // 2 for w in ("DRBL", "MWCL")}
    assert counts == {"DRBL": looks[0], "MWCL": looks[-1]}
    assert [p.base.workload for p in progress.open] == ["MWCL"]
    plan.save()
    verdicts = {
        j.subject.workload: j.verdict
        for j in compare(open_sides(tmp_path, None), Settings()).judgements
        if j.metric == "throughput"
    }
    assert verdicts == {"DRBL": "slower", "MWCL": "undecided"}


def test_it_ends_when_the_time_is_spent(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["DRBL"], 0, schedule(0.01, 2, 60))
    machine = Machine(plan.store, rates({}, 0.3))
    progress = measured(plan, machine, seconds=0.0)
    assert progress.out_of_time
    assert len(machine.log) <= 4


def test_whole_repetitions_are_looked_at_when_the_time_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that shows before the next planned look is found, and the look is not forgotten."""
    now = 0.0

    def spent(repetitions: int, name: str) -> tuple[Plan, Progress]:
        nonlocal now
        now = 0.0
        plan = plan_of(tmp_path / name, ["DRBL"], 0, (14, 30))
        machine = Machine(plan.store, rates({"DRBL": 0.2}, 0.05))

        def tick() -> None:
            nonlocal now
            now += 0.5

        machine.measured = tick
        monkeypatch.setattr(loop.time, "monotonic", lambda: now)
        progress = measured(plan, machine, seconds=repetitions + 0.5)
        monkeypatch.undo()
        plan.save(progress.looks)
        return plan, progress

    plan, progress = spent(10, "between")
    assert progress.out_of_time
    assert progress.looks.whole == (10,)
    found = compare(open_sides(plan.store.directory, None), Settings(metrics=("throughput",)))
    assert [j.verdict for j in found.judgements] == ["slower"]
    stored = record.stored_looks(plan.store).whole
    assert resumed(stored, 40, WHOLE_STEP) == (10, 14, 20, 28, 40)
    # With too few repetitions, and next to a planned look, there is nothing to see.
    for repetitions in (4, 12):
        assert spent(repetitions, f"at-{repetitions}")[1].looks.whole == (14, 30)


def test_an_interrupted_run_goes_on_in_the_same_order(tmp_path: Path) -> None:
    whole = plan_of(tmp_path / "whole", ["DRBL", "MWCL"], 8, ())
    one = Machine(whole.store, rates({}, 0.01))
    measured(whole, one)
    cut = plan_of(tmp_path / "cut", ["DRBL", "MWCL"], 8, ())
    first = Machine(cut.store, rates({}, 0.01))

    def stop(key: CellKey) -> bool:
        if len(first.log) == 14:
            raise KeyboardInterrupt
        return False

    first.fails = stop
    with pytest.raises(KeyboardInterrupt):
        measured(cut, first)
    second = Machine(cut.store, rates({}, 0.01))
    progress = measured(cut, second)
    assert [k.id for k in first.log[:13] + second.log] == [k.id for k in one.log]
    assert len(progress.cells) == len(one.log)


def test_a_point_that_fails_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["DRBL", "MWCL"], 8, ())
    machine = Machine(plan.store, rates({}, 0.01))
    machine.fails = lambda key: key.workload == "MWCL" and key.side == "B"
    progress = measured(plan, machine)
    assert sum(k.workload == "MWCL" for k in machine.log) == 4
    assert sum(k.workload == "DRBL" for k in machine.log) == 16
    (reason,) = progress.given_up.values()
    assert "made to fail" in reason


def test_a_side_that_only_breaks_is_a_verdict_and_no_mistake(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["DRBL"], 8, ())
    machine = Machine(plan.store, rates({}, 0.01))
    machine.fails = lambda key: key.side == "B"
    assert measured(plan, machine).given_up
    plan.save()
    comparison = compare(open_sides(tmp_path, None), Settings())
    assert [(h.kind, h.reason) for h in comparison.health] == [("broken", "made to fail")]
    assert comparison.regressed
    assert verdict(comparison) == BAD


def test_one_failed_repetition_is_no_reason_to_give_up(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["DRBL"], 8, ())
    machine = Machine(plan.store, rates({}, 0.01))
    machine.fails = lambda key: key.side == "B" and key.repetition == 3
    assert not measured(plan, machine).given_up
    assert len(machine.log) == 16


def test_nothing_measured_is_an_error(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["DRBL"], 8, ())
    machine = Machine(plan.store, rates({}, 0.01))
    machine.fails = lambda key: True
    with pytest.raises(FscaleError, match="made to fail"):
        measured(plan, machine)


def test_noise_sees_what_the_spread_allows(tmp_path: Path) -> None:
    reports = {}
    for name, spread in (("quiet", 0.005), ("loud", 0.2)):
        plan = plan_of(tmp_path / name, ["DRBL"], 20, (), new="ext4")
        measured(plan, Machine(plan.store, rates({}, spread)))
        plan.save()
        sides = open_sides(tmp_path / name, None)
        reports[name] = measure_noise(sides, Settings(), budget_minutes=1.0, wanted=0.1)
    quiet, loud = (reports[n].points for n in ("quiet", "loud"))
    assert 0.002 < quiet[0].aligned_cv < 0.01
    assert 0.1 < loud[0].aligned_cv < 0.4
    # A cell takes 1.5 s of wall time.
    assert quiet[0].repetitions_in_budget == 20
    assert not reports["quiet"].blind()
    assert len(reports["loud"].blind()) == 2  # both metrics
    assert quiet[0].verdict == "same"


def comparison_of(tmp_path: Path, change: float, spread: float) -> int:
    plan = plan_of(tmp_path, ["DRBL"], 10, ())
    measured(plan, Machine(plan.store, rates({"DRBL": change}, spread)))
    plan.save()
    return verdict(compare(open_sides(tmp_path, None), Settings(metrics=("throughput",))))


def test_bisect_tells_git_good_bad_or_skip(tmp_path: Path) -> None:
    assert comparison_of(tmp_path / "good", 0.0, 0.005) == GOOD
    assert comparison_of(tmp_path / "bad", 0.2, 0.005) == BAD
    assert comparison_of(tmp_path / "skip", 0.05, 0.1) == SKIP


def test_bisect_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(tmp_path)]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.chdir(tmp_path)
    cells = grid([1], 10, ["DRBL"], ["ext4"])
    good = write_run(tmp_path / "good", cells, filesystems=["ext4"])
    bisect = ["bisect", "--output", str(tmp_path / "out"), "--metric", "throughput"]

    def step(*arguments: str) -> int:
        return CliRunner().invoke(app, [*bisect, *arguments]).exit_code

    measure_it = ["/bin/sh", "-c", f'mkdir -p "$0" && cp -r {good}/. "$0"', "{output}"]
    assert step("--reference", str(good), "--", *measure_it) == GOOD
    assert step("--reference", str(good), "--", "/bin/false") == SKIP
    broken = {"status": "error", "reason": "EIO"}
    for changes, code in ((broken, BAD), (broken | {"status": "skipped"}, SKIP)):
        bad = write_run(tmp_path / "bad", [c.model_copy(update=changes) for c in cells])
        measure_bad = ["/bin/sh", "-c", f'rm -rf "$0"; cp -r {bad} "$0"', "{output}"]
        assert step("--reference", str(good), "--", *measure_bad) == code
    subprocess.run(["rm", "-r", tmp_path / "out"], check=True)
    # git takes 2 for "bad": a mistake must never look like a verdict.
    assert step("--reference", str(good)) == ABORT
    assert step("--reference", str(good), "--", "/bin/no-such-command") == ABORT
    assert step("--base", "ext4") == ABORT
    monkeypatch.chdir("/")
    assert step("--reference", str(good), "--", *measure_it) == ABORT
