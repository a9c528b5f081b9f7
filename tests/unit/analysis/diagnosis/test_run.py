# SPDX-License-Identifier: GPL-2.0-only
"""A whole run's diagnosis: which points, against which base, the costs and the table."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.curves import Curve
from fscale.analysis.diagnosis.naming import By, Name
from fscale.analysis.diagnosis.rules import rules
from fscale.analysis.diagnosis.run import (
    BottleneckRow,
    Cost,
    Diagnosed,
    Diagnosis,
    _law,
    costs,
    diagnose,
    flame_name,
    table,
)
from fscale.analysis.diagnosis.triage import LOCK, Suspect, Triage
from fscale.analysis.diagnosis.verdict import CurveVerdict, Shape
from fscale.analysis.reader import Results, load
from fscale.analysis.summary import summarise
from fscale.model.results import Cell, CellKey
from tests.support import synthetic
from tests.support.synthetic import cell, write_run

LEAF = "d_move"  # takes rename_lock


def key(cores: int = 1, repetition: int = 1, profile: str | None = None, **more: Any) -> CellKey:
    fields = {"workload": "MWRL", "cores": cores, "profile": profile}
    return synthetic.key(repetition, **(fields | more))


def profiled(run: Path, where: CellKey, rate: float, waited: int, **changes: Any) -> Cell:
    """A cell whose lock profile has `waited` of 1000 ns on rename_lock."""
    (run / "profiles").mkdir(parents=True, exist_ok=True)
    name = f"profiles/{where.id}.json.gz"
    wait = {f"1,-9,_raw_spin_lock\n{LEAF}\n": {"count": 1, "total": waited}}
    maps = {"type": "stats", "data": {"@wait": wait, "@active": 1000}}
    (run / name).write_bytes(gzip.compress(json.dumps({"output": json.dumps(maps)}).encode()))
    return cell(where, rate, profiles={"locks": name}, **changes)


def scored(rates: dict[int, float], **more: Any) -> list[Cell]:
    return [cell(key(n, r, **more), rate) for n, rate in rates.items() for r in (1, 2, 3)]


@pytest.fixture
def run(tmp_path: Path) -> Results:
    """Three file systems at 1, 2 and 4 cores, of which ext4 is profiled at each."""
    cells = [
        *scored({1: 100, 2: 150, 4: 80}),
        *scored({1: 100, 2: 200}, filesystem="xfs"),
        profiled(tmp_path, key(1, 1, "locks"), 90, 10),
        profiled(tmp_path, key(2, 1, "locks"), 120, 200),
        profiled(tmp_path, key(4, 1, "locks"), 76, 500),
        profiled(tmp_path, key(4, 2, "locks"), 80, 500),
        profiled(tmp_path, key(4, 3, "locks"), 1, 900, status="error"),
        profiled(tmp_path, key(2, 1, "locks", filesystem="xfs"), 200, 300),
        profiled(tmp_path, key(2, 1, "locks", workload="MWCL"), 10, 300),
        profiled(tmp_path, key(8, 1, "locks", filesystem="xfs"), 1, 900, status="error"),
    ]
    warnings = ["profile cpu: perf is not installed", "other"]
    return load(write_run(tmp_path, cells, filesystems=["xfs", "ext4"], cpus=8, warnings=warnings))


def named(found: Diagnosis) -> list[tuple[str, str, int]]:
    return [(d.key.workload, d.key.filesystem, d.key.cores) for d in found.points]


def test_the_costs_and_the_laws_are_those_of_the_run(run: Results) -> None:
    found = diagnose(run)
    assert found.costs == costs(run)
    assert found.costs
    assert {law.curve.filesystem for law in found.laws} == {"ext4", "xfs"}


def test_every_profiled_point_is_diagnosed(run: Results) -> None:
    found = diagnose(run)
    assert named(found) == [
        ("MWCL", "ext4", 2), ("MWRL", "ext4", 1), ("MWRL", "ext4", 2), ("MWRL", "ext4", 4),
        ("MWRL", "xfs", 2),
    ]  # fmt: skip
    assert found.warnings == ["profile cpu: perf is not installed"]
    lonely, one, two, four, _ = found.points
    assert (lonely.curve, lonely.judgement.shape) == (None, Shape.UNKNOWN)
    assert four.curve is not None
    assert [p.key.cores for p in four.curve.points] == [1, 2, 4]
    assert (four.judgement.shape, four.judgement.since) == (Shape.COLLAPSES, 4)
    assert four.triage.profiles == {"locks": 2}
    assert [[s.share for s in d.suspects] for d in (one, two, four)] == [[0.01], [0.2], [0.5]]


def test_chosen_points_alone_are_diagnosed(run: Results) -> None:
    (found,) = diagnose(run, [key(4).point]).points
    assert (found.key.filesystem, found.key.cores) == ("ext4", 4)
    assert diagnose(run, ["no such point"]).points == []
    assert diagnose(run, []).points == []


def test_what_is_there_at_one_core_already_explains_no_loss(tmp_path: Path) -> None:
    """Waiting for a disk counts by its growth, with the profile at the base of the curve."""

    def offcpu(where: CellKey, waited: int) -> Cell:
        found = profiled(tmp_path, where, 100, 0)
        blocked = {"2,__schedule\nwait_for_disk\n": {"count": 1, "total": waited}}
        maps = {"type": "stats", "data": {"@blocked": blocked, "@active": 1000}}
        path = found.profiles.pop("locks")
        found.profiles["offcpu"] = path
        content = gzip.compress(json.dumps({"output": json.dumps(maps)}).encode())
        (tmp_path / path).write_bytes(content)
        return found

    cells = [*scored({1: 100, 2: 150}), *scored({2: 100, 4: 110}, workload="DRBL_bg"),
             offcpu(key(1, 1, "offcpu"), 300), offcpu(key(2, 1, "offcpu"), 360),
             offcpu(key(2, 1, "offcpu", workload="DRBL_bg"), 200),
             offcpu(key(4, 1, "offcpu", workload="DRBL_bg"), 205)]  # fmt: skip
    workloads = ["MWRL", "DRBL_bg"]
    run = load(write_run(tmp_path, cells, workloads=workloads, filesystems=["ext4"], cpus=4))
    points = diagnose(run).points
    assert [(d.key.workload, d.key.cores, len(d.suspects)) for d in points] == [
        # A curve beside a writer begins at two cores.
        ("DRBL_bg", 2, 1), ("DRBL_bg", 4, 0), ("MWRL", 1, 1), ("MWRL", 2, 1),
    ]  # fmt: skip
    (chosen,) = diagnose(run, [key(4, workload="DRBL_bg").point]).points
    assert chosen.suspects == []


def test_costs_are_of_points_that_were_scored_too(run: Results) -> None:
    # 90 of 100, 120 of 150, the middle of 76 and 80 of 80, and 200 of 200; MWCL has no score.
    (found,) = costs(run)
    assert found == Cost("locks", found.ratio, 0.8, 1.0, 4)
    assert found.ratio == pytest.approx((0.9 + 0.975) / 2)


def test_costs_come_by_profiler(tmp_path: Path) -> None:
    cells = [*scored({1: 100}), cell(key(1, 1, "locks"), 90), cell(key(1, 1, "cpu"), 50)]
    found = costs(load(write_run(tmp_path, cells)))
    assert [(c.profiler, c.ratio) for c in found] == [("cpu", 0.5), ("locks", 0.9)]


def test_laws_are_fitted_to_physical_cores_or_say_why_not(run: Results) -> None:
    (short, _) = sorted(diagnose(run).laws, key=lambda law: law.curve.filesystem)
    assert (short.workload, short.fit) == ("MWRL", None)
    assert short.reason is not None
    assert "3" in short.reason
    rates = {1: 100.0, 2: 200.0, 3: 300.0, 4: 400.0, 8: 400.0}
    points = tuple(sorted(summarise(scored(rates)), key=lambda p: p.key.cores))
    halves, whole = (_law("x", Curve("ext4", None, points, 1, physical=n)) for n in (4, None))
    assert halves.fit is not None
    assert whole.fit is not None
    assert halves.fit.sigma.value == pytest.approx(0, abs=1e-6)
    assert whole.fit.sigma.value + whole.fit.kappa.value > 0.01
    assert (halves.reason, halves.workload) == (None, "x")


RENAME = next(c.rule for c in rules().locks if c.rule.object == "rename_lock")


def diagnosed(
    share: float, cause: Name | None, workload: str, filesystem: str = "ext4", cores: int = 4
) -> Diagnosed:
    found = Triage(key(cores, workload=workload, filesystem=filesystem), [], {}, {})
    suspect = Suspect(cause, LOCK, "mutex", blocked=share) if cause else None
    judgement = CurveVerdict(Shape.UNKNOWN, cores, None, None, suspect, None, "")
    return Diagnosed(found, None, judgement, [])


def test_the_table_has_each_object_of_each_file_system_once(tmp_path: Path) -> None:
    run = load(write_run(tmp_path, scored({1: 1}), workloads=["MWRL"], filesystems=["xfs", "ext4"]))
    known = Name("rename_lock", "System", By.ADDRESS_AND_STACK, RENAME)
    unknown = Name("somebody", None, By.STACK)
    points = [
        diagnosed(0.2, known, "MWRL"), diagnosed(0.5, known, "odd", cores=8),
        diagnosed(0.3, known, "MWRL"), diagnosed(0.6, unknown, "odd"), diagnosed(0.9, None, "odd"),
        diagnosed(0.1, unknown, "odd", "xfs"), diagnosed(0.95, unknown, "odd", "btrfs"),
    ]  # fmt: skip
    found = table(Diagnosis(points, [], [], []), run)
    assert [(r.filesystem, r.object) for r in found] == [
        ("xfs", "somebody"), ("ext4", "somebody"), ("ext4", "rename_lock"), ("btrfs", "somebody"),
    ]  # fmt: skip
    assert found[2] == BottleneckRow(
        "ext4", "Rename lock", "rename_lock", "System", ["MWRL: pread(fd, b, 4K, 0)", "odd"],
        "odd at 8 cores: 50.0% of the cores' time; named by address and stack", "rename-lock",
    )  # fmt: skip
    assert found[0] == BottleneckRow(
        "xfs", "lock", "somebody", "not known", ["odd"],
        "odd at 4 cores: 10.0% of the cores' time; named by stack", None,
    )  # fmt: skip


def test_a_flame_graph_is_named_by_its_point_and_profiler() -> None:
    assert flame_name(key(4, 3, "cpu"), "cpu") == f"{key(4).point}-cpu.svg"


def test_a_profile_that_is_faster_has_no_cost() -> None:
    assert Cost("locks", 0.9, 0.8, 0.95, 3).sentence == (
        "the locks profile costs 10.0%: 0.900 of the unprofiled throughput (0.800 to 0.950)"
    )
    faster = Cost("locks", 1.089, 1.0, 1.1, 3).sentence
    assert faster.startswith("the locks profile has no measurable cost: 1.089 of")
