# SPDX-License-Identifier: GPL-2.0-only
"""The plan of a paired run, from two sides that were prepared: pairs, looks, records, refusals."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fscale.ab import plan
from fscale.ab.local import order
from fscale.ab.plan import MOST_REPETITIONS, Plan
from fscale.ab.point import PairedPoint
from fscale.ab.record import Looks
from fscale.ab.slicing import Slicing
from fscale.analysis.compare.sequential import growing, schedule
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import FIRST_LOOK
from fscale.analysis.metrics import CPU_EFFICIENCY, THROUGHPUT
from fscale.model import catalogue
from fscale.model.config import Medium
from fscale.model.errors import FscaleError
from fscale.model.load import LoadSettings
from fscale.model.results import Run
from fscale.model.store import Store
from fscale.model.variant import parse, split_partitions
from fscale.runner.cell.measure import Limits
from fscale.runner.prepare import Prepared
from fscale.runner.request import Request
from fscale.runner.setup import Setup
from tests.support import synthetic
from tests.support.synthetic import descriptor, machine, write_run

RAM = Medium(title="ram", kind="loop", size=1 << 30)


class Load:
    sliced = True

    def __init__(self, workload: str = "DRBL") -> None:
        self.descriptor = descriptor(workload)


class Preparer:
    """In the place of `prepare`: what it was asked for, and sides that can be made odd."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.asked: list[Request] = []
        self.media = {"ram": RAM}
        self.change: Callable[[Prepared, str], None] = lambda prepared, name: None

    def __call__(self, request: Request) -> Prepared:
        self.asked.append(request)
        (name,) = request.overrides["filesystems"]
        plain = split_partitions(name)[0]
        run = self.run.model_copy(deep=True)
        run.seed = 77 if request.seed is None else request.seed
        run.media = {medium: {"of": plain} for medium in self.media}
        fs = catalogue.load_filesystem(name)
        run.filesystems = {name: fs.model_dump(mode="json")}
        run.versions = {"python": "3.11", "gcc": "12", f"mkfs of {plain}": "1.47"}
        run.command = ["this call"]
        run.suite = {"workloads": ["MWCL", "DRBL"]}
        cells = [
            synthetic.key(workload=workload, filesystem=name, cores=cores)
            for cores, workload in ((2, "DRBL"), (1, "MWCL"), (1, "DRBL"))
        ]  # fmt: skip
        if plain == "ext4":
            cells.reverse()
        setup = Setup(
            machine=run.machine, variants={name: parse(name)}, filesystems={name: fs},
            media=self.media, loads={"MWCL": Load(), "DRBL": Load()},  # type: ignore[dict-item]
            settings=LoadSettings(warmup=0), limits=Limits(setup=1, margin=1), seed=run.seed,
            missing={"tool": "not there"}, profilers={"locks": None},  # type: ignore[dict-item]
        )  # fmt: skip
        prepared = Prepared(setup, run, cells, Store(request.output), resumed=False)
        self.change(prepared, request.output.name)
        return prepared


@pytest.fixture
def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Preparer:
    run = Store(write_run(tmp_path / "any", [], machine=machine(2))).load_run()
    assert run is not None
    preparer = Preparer(run)
    monkeypatch.setattr(plan, "prepare", preparer)
    return preparer


def request(output: Path, **changes: Any) -> Request:
    asked = Request(Path("suite.toml"), output, overrides={"cores": [1, 2]}, explicit={"DRBL"})
    return replace(asked, **changes)


def make(
    output: Path, repetitions: int = 20, new: str = "xfs", *, slicing: Slicing | None = None,
    metrics: tuple[str, ...] = (THROUGHPUT, CPU_EFFICIENCY), **changes: Any,
) -> Plan:  # fmt: skip
    settings = Settings.model_validate({"metrics": metrics})
    base, other = parse("ext4:mount=data=journal"), parse(new)
    return plan.make(
        request(output, **changes), base, other, settings, repetitions,
        slices=slicing is not None, slicing=slicing or Slicing(),
    )  # fmt: skip


def refusal(output: Path, *arguments: Any, **keywords: Any) -> str:
    with pytest.raises(FscaleError) as caught:
        make(output, *arguments, **keywords)
    return str(caught.value)


def test_each_side_is_prepared_alone_and_with_one_seed(prepare: Preparer, tmp_path: Path) -> None:
    make(tmp_path / "out", new="xfs:binary=/other")
    a, b = prepare.asked
    assert (a.output, b.output) == (tmp_path / "out" / "side-a", tmp_path / "out" / "side-b")
    journal = "ext4:mount=data=journal"
    own = {"filesystems": [journal], "repetitions": 1, "control": 0, "remeasure": 0}
    assert a.overrides == {"cores": [1, 2], **own}
    assert (a.explicit, b.explicit) == ({"DRBL", journal}, {"DRBL", "xfs"})
    assert b.overrides["filesystems"] == ["xfs"]
    assert (a.binary, b.binary) == (request(tmp_path).binary, Path("/other"))
    assert (a.seed, b.seed) == (None, 77)


def test_both_sides_get_the_space_that_an_aged_one_leaves(
    prepare: Preparer, tmp_path: Path
) -> None:
    filled = {"side-a": 0.0, "side-b": 0.8}
    prepare.change = lambda prepared, name: setattr(prepared.setup, "filled", filled[name])
    setups = make(tmp_path / "out").setups
    assert [setup.filled for setup in setups.values()] == [0.8, 0.8]


def test_equal_points_of_both_sides_are_pairs(prepare: Preparer, tmp_path: Path) -> None:
    found = make(tmp_path / "out").points
    assert [(p.base.workload, p.base.cores) for p in found] == [
        ("DRBL", 1), ("DRBL", 2), ("MWCL", 1),
    ]  # fmt: skip
    for pair in found:
        assert pair.base.filesystem == "ext4:mount=data=journal"
        assert pair.new == pair.base.model_copy(update={"filesystem": "xfs"})


def test_a_point_of_a_side_is_a_cell(prepare: Preparer, tmp_path: Path) -> None:
    whole = make(tmp_path / "out")
    pair = whole.points[0]
    assert pair.key("A", 3) == pair.base.model_copy(update={"side": "A", "repetition": 3})
    assert pair.key("B", 4) == pair.new.model_copy(update={"side": "B", "repetition": 4})
    quads = {
        n: [(k.side, k.repetition) for k in order(pair, n, whole.run.seed)] for n in range(1, 40, 2)
    }
    for n, quad in quads.items():
        sides = "".join(side or "" for side, _ in quad)
        assert sides in ("ABBA", "BAAB")
        assert [repetition for _, repetition in quad] == [n, n, n + 1, n + 1]
    assert len({quad[0][0] for quad in quads.values()}) == 2
    assert pair.step == 2


def test_the_order_is_that_of_the_seed_the_point_and_the_repetition(
    prepare: Preparer, tmp_path: Path
) -> None:
    def coins(found: Plan, pair: PairedPoint) -> list[str | None]:
        return [next(order(pair, n, found.run.seed)).side for n in range(1, 21, 2)]

    one, other = make(tmp_path / "one", seed=1), make(tmp_path / "other", seed=2)
    # Kept, so that a run of before goes on in its order.
    assert "".join(str(c) for c in coins(one, one.points[0])) == "AABBBBABAB"
    assert coins(one, one.points[0]) != coins(one, one.points[1])
    assert coins(one, one.points[0]) != coins(other, other.points[0])


def test_the_sides_are_set_up_as_they_were_asked_for(prepare: Preparer, tmp_path: Path) -> None:
    setups = make(tmp_path / "out").setups
    ext4, xfs = catalogue.load_filesystem("ext4"), catalogue.load_filesystem("xfs")
    options = [*ext4.mount_options, "data=journal"]
    changed = ext4.model_copy(update={"mount_options": options})
    assert setups["A"].filesystems == {"ext4:mount=data=journal": changed}
    assert setups["B"].filesystems == {"xfs": xfs}
    for setup in setups.values():
        assert (setup.missing, setup.profilers) == ({"tool": "not there"}, {})


def test_the_run_records_both_sides(prepare: Preparer, tmp_path: Path) -> None:
    def another(prepared: Prepared, name: str) -> None:
        if name == "side-b":
            prepared.run.versions |= {"python": "3.12"}
            prepared.run.media = {"ssd": {"of": "xfs"}}

    prepare.change = another
    run = make(tmp_path / "out").run
    assert (run.id, run.seed, run.planned_cells) == ("out", 77, 2 * 20 * 3)
    assert run.versions == {
        "python": "3.11", "gcc": "12", "python of B": "3.12",
        "mkfs of ext4": "1.47", "mkfs of xfs of B": "1.47",
    }  # fmt: skip
    assert run.media == {"ram": {"of": "ext4"}, "ssd": {"of": "xfs"}}
    assert run.suite == {
        "workloads": ["MWCL", "DRBL"], "base": "ext4:mount=data=journal", "new": "xfs",
        "repetitions": 20, "filesystems": ["ext4:mount=data=journal", "xfs"],
    }  # fmt: skip
    assert list(run.filesystems) == ["ext4:mount=data=journal", "xfs"]
    assert run.filesystems["xfs"] == catalogue.load_filesystem("xfs").model_dump(mode="json")
    assert run.started == prepare.run.started


def test_an_existing_directory_has_no_file_system_of_its_own(
    prepare: Preparer, tmp_path: Path
) -> None:
    def existing(prepared: Prepared, name: str) -> None:
        prepared.setup.filesystems = dict.fromkeys(prepared.setup.filesystems)
        prepared.run.filesystems = {name: {"existing": True} for name in prepared.run.filesystems}

    prepare.change = existing
    settings = Settings(metrics=("throughput",))
    found = plan.make(request(tmp_path / "out"), parse("ext4"), parse("xfs"), settings, 20)
    assert found.run.filesystems == {"ext4": {"existing": True}, "xfs": {"existing": True}}


def test_the_record_beside_the_run(prepare: Preparer, tmp_path: Path) -> None:
    make(tmp_path / "whole", 0, metrics=(THROUGHPUT,)).save()
    text = (tmp_path / "whole" / "ab.json").read_text()
    assert text.startswith('{\n "schema": 1,\n')
    assert text.endswith("\n}\n")
    record = json.loads(text)
    assert record == {
        "schema": 1, "base": "ext4:mount=data=journal", "new": "xfs",
        "looks": record["looks"], "pair_looks": list(growing(FIRST_LOOK, MOST_REPETITIONS)),
        "settings": Settings(metrics=(THROUGHPUT,)).model_dump(mode="json"),
    }  # fmt: skip
    assert record["looks"][0] == 8
    assert Store(tmp_path / "whole").load_run() is not None
    make(tmp_path / "cut", 0, slicing=Slicing(0.05, 30)).save()
    run = Store(tmp_path / "cut").load_run()
    assert run is not None
    own = {"seconds": 0.05, "blocks": 30, "warmup": 1, "settle": False, "drain": 0.0}
    own |= {"consumes": False, "stock": 1.0}
    assert run.suite["slices"] == {"DRBL": own, "MWCL": own}


def test_repetitions_are_fixed_and_even_or_there_are_looks(
    prepare: Preparer, tmp_path: Path
) -> None:
    assert [make(tmp_path / "a", n).repetitions for n in (20, 21)] == [20, 22]
    assert make(tmp_path / "a", 20).looks == Looks()
    free = make(tmp_path / "a", 0)
    assert free.repetitions == 0
    # 3 points of 2 metrics and 1 curve.
    assert free.looks.whole == schedule(0.01, 7, MOST_REPETITIONS)
    cut = make(tmp_path / "a", 0, slicing=Slicing())
    assert cut.looks.pairs == growing(FIRST_LOOK, MOST_REPETITIONS)
    assert {cut.aim.last(point, cut.looks) for point in cut.points} == {cut.looks.pairs[-1]}
    assert {free.aim.last(point, free.looks) for point in free.points} == {free.looks.whole[-1]}
    assert ({point.step for point in cut.points}, cut.repetitions) == ({1}, 0)
    assert make(tmp_path / "a", 5, slicing=Slicing()).repetitions == 5
    assert make(tmp_path / "a", 4, slicing=Slicing()).looks.pairs == ()


def test_too_few_repetitions_are_refused_with_the_number(prepare: Preparer, tmp_path: Path) -> None:
    few = refusal(tmp_path / "a", 2)
    assert few.startswith("2 repetitions per side are too few")
    assert "among 7 tests" in few
    assert "give --repetitions 7" in few
    assert "at least 4 " in refusal(tmp_path / "a", 3, slicing=Slicing())
    without = refusal(tmp_path / "a", metrics=("count",))
    assert "counts come from profiling repetitions" in without
    assert without.endswith("give --metric throughput or per-cpu-second")


def test_repetitions_are_counted_in_blocks(prepare: Preparer, tmp_path: Path) -> None:
    # 0.002 / 7 takes 8 without blocks of four.
    settings = Settings(fdr=0.002)
    asked = request(tmp_path / "a"), parse("ext4"), parse("xfs"), settings
    with pytest.raises(FscaleError, match="at least 9 "):
        plan.make(*asked, 8)
    found = plan.make(*asked, 10)
    assert found.settings is settings
    assert not any(point.slicing for point in found.points)


def test_the_last_repetition_of_a_point(prepare: Preparer, tmp_path: Path) -> None:
    whole = make(tmp_path / "whole", 21)
    # A block is two repetitions of a side, so an odd number is one more; a pair is one.
    assert {
        replace(whole, repetitions=n).aim.last(whole.points[0], whole.looks) for n in (21, 22)
    } == {22}
    cut = make(tmp_path / "cut", 21, slicing=Slicing())
    assert cut.aim.last(cut.points[0], cut.looks) == 21
    looks = Looks((8, 12), (6, 9))
    aim = replace(whole, repetitions=0).aim
    assert [aim.last(own.points[0], looks) for own in (whole, cut)] == [12, 9]


def test_what_cannot_be_paired_is_refused(prepare: Preparer, tmp_path: Path) -> None:
    def other_device(prepared: Prepared, name: str) -> None:
        prepared.setup.devices = {"nvme": name}  # type: ignore[dict-item]

    prepare.change = other_device
    assert "the device changed" in refusal(tmp_path / "a")
    prepare.media = {"ram": RAM, "ssd": RAM}
    assert "not on 2 (ram, ssd); give one with --media" in refusal(tmp_path / "a")


@pytest.mark.parametrize("odd", ["side-a", "side-b"])
def test_what_takes_no_turns_is_refused(prepare: Preparer, tmp_path: Path, odd: str) -> None:
    def whole(prepared: Prepared, name: str) -> None:
        if name == odd:
            load = Load()
            load.sliced = False
            prepared.setup.loads = {"MWCL": Load(), "DRBL": load, "not wanted": load}  # type: ignore[dict-item]

    prepare.change = whole
    without = refusal(tmp_path / "a", slicing=Slicing())
    assert "DRBL cannot take turns; leave --slices out" in without
    assert not any(point.slicing for point in make(tmp_path / "a").points)


def test_several_workers_per_cpu_take_no_turns(prepare: Preparer, tmp_path: Path) -> None:
    def oversubscribed(prepared: Prepared, name: str) -> None:
        prepared.cells = [key.model_copy(update={"workers_per_cpu": 2}) for key in prepared.cells]

    prepare.change = oversubscribed
    refused = refusal(tmp_path / "a", slicing=Slicing())
    assert "workers_per_cpu = 2" in refused
    assert "leave --slices out" in refused
    found = make(tmp_path / "a")
    assert not any(point.slicing for point in found.points)
    assert {point.base.workers_per_cpu for point in found.points} == {2}


def test_each_value_of_a_sweep_is_a_point_that_is_cut_by_itself(
    prepare: Preparer, tmp_path: Path
) -> None:
    """Of equal workloads, one in a steady state (`keep`) has no tail that slices can judge."""

    def sweep(prepared: Prepared, name: str) -> None:
        values = (200, 0, 100) if name == "side-a" else (0, 100, 200)
        prepared.cells = [
            key.model_copy(update={"options": {"keep": value}})
            for value in values
            for key in prepared.cells
            if key.workload == "DRBL"
        ]

    prepare.change = sweep
    latencies = ("p99", THROUGHPUT)
    found = plan.make(
        request(tmp_path / "a"), parse("ext4:mount=data=journal"), parse("xfs"),
        Settings.model_validate({"metrics": latencies}), 20, slices=None,
    )  # fmt: skip
    assert [(p.base.load, p.base.cores) for p in found.points] == [
        (f"DRBL keep={value}", cores) for value in (0, 100, 200) for cores in (1, 2)
    ]
    assert all(p.new == p.base.model_copy(update={"filesystem": "xfs"}) for p in found.points)
    assert [p.slicing is not None for p in found.points] == [True, True, False, False, False, False]
    assert list(found.run.suite["slices"]) == ["DRBL keep=0"]


@pytest.mark.parametrize("odd", ["side-a", "side-b"])
def test_what_can_is_cut_and_what_puts_work_off_settles(
    prepare: Preparer, tmp_path: Path, odd: str
) -> None:
    def puts_off(prepared: Prepared, name: str) -> None:
        if name == odd:
            load = Load()
            late = {"puts_off": True, "defers_frees": True}
            load.descriptor = load.descriptor.model_copy(update=late)
            prepared.setup.loads = {"MWCL": Load(), "DRBL": load}  # type: ignore[dict-item]

    prepare.change = puts_off
    sides = parse("ext4"), parse("xfs")
    found = plan.make(request(tmp_path / "a"), *sides, Settings(), 9, slices=None)
    ways = {p.base.workload: (p.slicing, found.aim.last(p, found.looks)) for p in found.points}
    assert ways == {"DRBL": (Slicing(settle=True, drain=0.02), 9), "MWCL": (Slicing(), 9)}

    # The settled rate is one more test of each of DRBL's two points.
    for metrics, tests in ((("throughput",), 4), (("throughput", "settled"), 6)):
        said = refusal(tmp_path / "few", 3, slicing=Slicing(), metrics=metrics)
        assert f"a single change among {tests} tests" in said
    recorded = {n: (own["settle"], own["drain"]) for n, own in found.run.suite["slices"].items()}
    assert recorded == {"DRBL": (True, 0.02), "MWCL": (False, 0.0)}
    found = plan.make(request(tmp_path / "d"), *sides, Settings(), 9, slices=False)
    assert not any(p.slicing for p in found.points)
    prepare.media = {"nvme": Medium(title="disk", kind="device", path="/dev/null")}
    found = plan.make(request(tmp_path / "b"), *sides, Settings(), 9, slices=None)
    assert all(point.slicing for point in found.points)


def test_latencies_and_fairness_count_where_they_can_be(prepare: Preparer, tmp_path: Path) -> None:
    """Three points, of which one has two workers."""
    for metrics, tests in (
        (("p99",), 3),
        (("p50", "p99", "p99.9", "max"), 12),
        (("slowest-worker", "jain"), 2),
        (("per-joule",), 3),
        (("throughput", "p99", "jain"), 3 + 1 + 3 + 1),  # with the curve of two core counts
    ):
        assert f"among {tests} tests" in refusal(tmp_path / "few", 3, metrics=metrics)


def test_what_slices_do_not_carry_is_measured_whole(prepare: Preparer, tmp_path: Path) -> None:
    sides = parse("ext4"), parse("xfs")
    for metric, sliced in (("p99", True), ("max", False), ("jain", False), ("per-joule", False)):
        settings = Settings.model_validate({"metrics": ("throughput", metric)})
        found = plan.make(request(tmp_path / metric), *sides, settings, 20, slices=None)
        assert {point.slicing is not None for point in found.points} == {sliced}
        assert found.run.suite.get("slices") is None or sliced
    assert "max" in refusal(tmp_path / "b", slicing=Slicing(), metrics=("max",))


def test_a_run_goes_on_or_is_another_one(prepare: Preparer, tmp_path: Path) -> None:
    first = make(tmp_path / "out", seed=5)
    first.run.started = "2026-01-01T00:00:00+00:00"
    first.run.machine.boots = ["before"]
    first.save()
    prepare.run.machine.boots = ["now"]
    again = make(tmp_path / "out")
    assert (again.run.seed, again.run.started) == (5, "2026-01-01T00:00:00+00:00")
    assert again.run.command == ["this call", "this call"]
    assert again.run.machine.boots == ["before", "now"]
    refused = refusal(tmp_path / "out", seed=6)
    assert refused.startswith(f"{tmp_path / 'out'} ")
    assert "\n    seed: 5 -> 6\n" in refused
    assert "\n    seed: 5 -> 6\n" in refusal(tmp_path / "out", 22, seed=6)
