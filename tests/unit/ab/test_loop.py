# SPDX-License-Identifier: GPL-2.0-only
"""Points in slices beside points in whole repetitions, and what the user sees of them."""

import io
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from fscale.ab import local, loop, progress_table
from fscale.ab.local import LocalSource
from fscale.ab.plan import Plan, continued_point
from fscale.ab.point import PairedPoint
from fscale.ab.record import Looks
from fscale.ab.slices import set_up_order
from fscale.ab.slicing import DEFAULT, LARGER_STOCK, LONGER_SECONDS, Slicing
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.model import Judgement, Subject, Verdict
from fscale.analysis.compare.noise import measure_noise
from fscale.analysis.compare.pairs import subject_of
from fscale.analysis.compare.sequential import growing, resumed
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.model.fault import Fault
from fscale.model.results import Cell, CellKey
from fscale.model.store import Store
from fscale.runner.session import Session
from tests.support import paired_plans
from tests.support.paired_plans import key_of
from tests.support.synthetic import cell, sliced

SETTINGS = Settings(metrics=("throughput",), pause=0)


class Machine:
    """In the place of a Session and of measure_pair: 1% of noise, and DWOL loses 6%."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.setup: object = None
        self.order: list[tuple[str, str]] = []
        self.turns: list[tuple[str, float]] = []
        self.fails: Callable[[CellKey], bool] = lambda key: False

    def _rate(self, key: CellKey) -> float:
        change = 0.06 if key.workload == "DWOL" and key.side == "B" else 0.0
        return 1e5 * (1 - change) * math.exp(random.Random(key.id).gauss(0, 0.007))

    def cell(self, key: CellKey) -> Cell:
        self.order.append((key.workload, key.side or ""))
        done = cell(key, self._rate(key))
        if self.fails(key) and key.side == "B":
            done.status, done.reason = "error", "made to fail"
        self.store.save_cell(done)
        return done

    def pair(
        self,
        session: object,
        setups: object,
        keys: Mapping[str, CellKey],
        slicing: Slicing,
        seed: int,
        metrics: object,
    ) -> list[Cell]:
        found = []
        self.turns.append((keys["A"].workload, slicing.seconds))
        for side, key in keys.items():
            self.order.append((key.workload, side))
            noise = random.Random(f"blocks of {key.id}")
            rates = [self._rate(key) * math.exp(noise.gauss(0, 0.02)) for _ in range(10)]
            found.append(sliced(key, rates, 1.8 * slicing.seconds))
            for turn in found[-1].slices or () if slicing.settle else ():
                turn.settle_seconds = 0.02 * math.exp(random.Random(key.id).gauss(0, 0.5))
        if any(self.fails(key) for key in keys.values()):
            for one in found:
                one.status, one.reason, one.slices = "error", "made to fail", None
        for one in found:
            self.store.save_cell(one)
        return found


def plan_of(
    directory: Path, slicing: Mapping[str, Slicing | None], repetitions: int = 0, **more: str
) -> Plan:
    looks = Looks() if repetitions else Looks((8, 12, 16, 22, 30), (6, 8, 11, 15, 21))
    return paired_plans.plan_of(directory, slicing, SETTINGS, looks, repetitions, **more)


def measured(
    plan: Plan,
    monkeypatch: pytest.MonkeyPatch,
    watcher: loop.Watcher,
    fails: Callable[[CellKey], bool] = lambda key: False,
) -> tuple[Machine, loop.Progress]:
    machine = Machine(plan.store)
    machine.fails = fails
    monkeypatch.setattr(local, "measure_pair", machine.pair)
    progress = loop.measure(LocalSource(plan, cast("Session", machine)), plan.aim, 1e6, watcher)
    return machine, progress


def test_each_way_has_its_own_rounds_and_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(tmp_path, {"DWOL": DEFAULT, "DRBL": DEFAULT, "DWAL": None})
    with progress_table.ProgressTable(plan.points, plan.settings) as watcher:
        machine, progress = measured(plan, monkeypatch, watcher)
    plan.save()
    assert not progress.open
    done = {name.split("-")[0]: count for name, count in progress.done.items()}
    assert done["DWOL"] in plan.looks.pairs
    assert done["DRBL"] in plan.looks.pairs
    assert done["DWAL"] in plan.looks.whole
    counts = Counter(machine.order)
    assert all(counts[w, side] == n for w, n in done.items() for side in "AB")
    comparison = compare(open_sides(tmp_path, None), SETTINGS)
    verdicts = {j.subject.workload: j for j in comparison.judgements}
    assert verdicts["DWOL"].verdict == "slower"
    assert verdicts["DWOL"].pairs == done["DWOL"]
    assert verdicts["DRBL"].verdict == "same"
    assert verdicts["DRBL"].margin == 0.02
    assert (verdicts["DWAL"].verdict, verdicts["DWAL"].pairs) == ("same", None)
    assert verdicts["DWAL"].margin == 0.05
    said = " ".join(capsys.readouterr().err.split())
    assert "DWOL x1, throughput: slower -" in said
    assert "DWAL x1, throughput: same" in said
    assert "0 of 3 points are undecided" in said


def test_what_is_the_same_in_its_typical_turns_waits_and_goes_on_in_longer_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = {"DWOL": DEFAULT, "DRBL": DEFAULT, "DWSL": replace(DEFAULT, consumes=True)}
    plan = replace(plan_of(tmp_path, ways), settings=Settings(metrics=("throughput",)))
    machine, progress = measured(plan, monkeypatch, loop.Quiet())
    assert not progress.open
    verdicts = {
        j.subject.workload: j for j in loop.judge_cells(progress.cells, plan.settings, plan.looks)
    }
    assert {name: j.verdict for name, j in verdicts.items()} == {
        "DWOL": "slower", "DRBL": "same", "DWSL": "undecided",
    }  # fmt: skip
    assert verdicts["DWSL"].lacks_only_work
    longer = [n for n, (_, seconds) in enumerate(machine.turns) if seconds == LONGER_SECONDS]
    assert {machine.turns[n][0] for n in longer} == {"DRBL"}
    assert longer == list(range(longer[0], len(machine.turns)))


def test_what_cannot_take_longer_turns_waits_and_goes_on_in_more_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = {"DWOL": DEFAULT, "DWSL": replace(DEFAULT, consumes=True)}
    # Pauses of 50 ms need 3.9 s of work: 11 pairs, of which the first look has six.
    settings = Settings(metrics=("throughput",), pause=0.05)
    plan = replace(plan_of(tmp_path, ways), settings=settings)
    machine, progress = measured(plan, monkeypatch, loop.Quiet())
    done = {name.split("-")[0]: count for name, count in progress.done.items()}
    assert done == {"DWOL": plan.looks.pairs[0], "DWSL": 11}
    assert machine.turns[-5:] == [("DWSL", DEFAULT.seconds)] * 5
    verdicts = {
        j.subject.workload: j.verdict
        for j in loop.judge_cells(progress.cells, plan.settings, plan.looks)
    }
    assert verdicts == {"DWOL": "slower", "DWSL": "same"}


@pytest.mark.parametrize(
    ("other", "closed"), [(200, True), (5, False), (None, False)]
)  # None: its mean rate is undecided, which more pairs may find to be slower
def test_a_point_is_closed_if_all_that_is_left_lacks_more_than_may_be_made(
    tmp_path: Path, other: int | None, *, closed: bool
) -> None:
    plan = plan_of(tmp_path, {"DWSL": replace(DEFAULT, consumes=True)})
    (point,) = plan.points
    left = [
        Judgement.model_construct(
            subject=subject_of(point.base),
            metric=metric,
            verdict="undecided",
            rare_operations=True,
            lacks_only_work=more is not None,
            more_repetitions=more,
        )
        for metric, more in (("throughput", 200), ("per-cpu-second", other))
    ]
    progress = loop.Progress(open=[point], looks=plan.looks)
    source = LocalSource(plan, cast("Session", None))
    loop._add_work(source, plan.aim, progress, point, left)
    assert progress.open == ([] if closed else [replace(point, waits=True)])


def test_a_point_that_left_slices_stays_in_whole_repetitions_when_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, {"DRBL": DEFAULT})
    (point,) = plan.points
    assert continued_point(point, plan.store) == point
    whole = replace(plan, points=[replace(point, slicing=None)])
    measured(whole, monkeypatch, loop.Quiet())
    assert continued_point(point, plan.store) == replace(point, slicing=None)


def test_what_is_put_off_is_waited_for_where_nothing_else_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = {}
    for metrics in (("throughput", "settled"), ("settled",)):
        made = plan_of(tmp_path / metrics[0], {"DWAL": replace(DEFAULT, settle=True)})
        plan = replace(made, settings=Settings(metrics=metrics, pause=0))
        with progress_table.ProgressTable(plan.points, plan.settings) as watcher:
            _, progress = measured(plan, monkeypatch, watcher)
        judgements = loop.judge_cells(progress.cells, plan.settings, plan.looks)
        verdicts = {j.metric: j.verdict for j in judgements}
        assert verdicts.pop("settled") == "undecided"
        assert set(verdicts.values()) <= {"same"}
        done[metrics[0]] = progress.done.total()
    assert done["throughput"] < done["settled"] == plan.looks.pairs[-1]


@pytest.mark.parametrize(
    ("throughput", "per_cpu_second", "measured_on"),
    [
        ("slower", "undecided", False),
        ("undecided", "slower", False),
        ("faster", "undecided", True),
        ("same", "undecided", True),
        ("same", "faster", False),
    ],
)
def test_a_point_that_is_slower_by_one_rate_has_been_found(
    throughput: Verdict, per_cpu_second: Verdict, *, measured_on: bool
) -> None:
    own, other = subject_of(key_of("DWAL")), subject_of(key_of("DRBL"))
    said: list[tuple[Subject, str, Verdict]] = [
        (own, "throughput", throughput),
        (own, "per-cpu-second", per_cpu_second),
        (other, "throughput", "undecided"),
    ]
    judgements = [
        Judgement.model_construct(subject=subject, metric=metric, verdict=verdict)
        for subject, metric, verdict in said
    ]
    assert loop.undecided(judgements) == ({own, other} if measured_on else {other})


def test_a_bisection_ends_as_soon_as_something_is_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan_of(tmp_path, {"DWOL": DEFAULT, "DWAL": None})
    # Within a thousandth nothing is decided for long.
    settings = SETTINGS.model_copy(update={"margin": 0.001})
    plan = replace(made, one_is_enough=True, settings=settings)
    with progress_table.ProgressTable(plan.points, plan.settings) as watcher:
        _, progress = measured(plan, monkeypatch, watcher)
    assert progress.slower
    done = {name.split("-")[0]: count for name, count in progress.done.items()}
    assert done["DWOL"] in plan.looks.pairs
    assert "DWAL" in {point.base.workload for point in progress.open}


def test_a_fixed_number_is_even_where_repetitions_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, {"DRBL": DEFAULT, "DWAL": None}, repetitions=9)
    with progress_table.ProgressTable(plan.points, plan.settings) as watcher:
        _, progress = measured(plan, monkeypatch, watcher)
    assert {n.split("-")[0]: c for n, c in progress.done.items()} == {"DRBL": 9, "DWAL": 10}


def test_a_first_pair_that_fails_is_measured_whole_which_tells_the_sides_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, {"DRBL": DEFAULT, "DWOL": DEFAULT}, repetitions=10)
    with progress_table.ProgressTable(plan.points, plan.settings) as watcher:
        _, progress = measured(plan, monkeypatch, watcher, lambda key: key.workload == "DWOL")
    plan.save()
    assert [name.split("-")[0] for name in progress.not_sliced] == ["DWOL"]
    assert [name.split("-")[0] for name in progress.given_up] == ["DWOL"]
    (point,) = compare(open_sides(tmp_path, None), SETTINGS).health
    assert (point.kind, point.subject.workload, point.base.good) == ("broken", "DWOL", 2)


@pytest.mark.parametrize("fault", ["machine", "filesystem", "user"])
@pytest.mark.parametrize("failures", [1, 2])
def test_a_pair_that_the_machine_broke_is_measured_once_more(
    failures: int, fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a larger stock, because a busy machine makes the pilot slow."""
    plan = plan_of(tmp_path, {"DRBL": DEFAULT}, repetitions=6)
    machine, stocks = Machine(plan.store), list[float]()

    def pair(session: object, setups: object, keys: Any, slicing: Slicing, *more: Any) -> Any:
        stocks.append(slicing.stock)
        machine.fails = lambda key: len(stocks) <= failures
        cells = machine.pair(session, setups, keys, slicing, *more)
        for one in cells:
            one.fault = None if one.status == "ok" else fault
        return cells

    monkeypatch.setattr(local, "measure_pair", pair)
    source = LocalSource(plan, cast("Session", machine))
    progress = loop.measure(source, plan.aim, 1e6, loop.Quiet())
    again = fault == "machine"
    assert bool(progress.not_sliced) is (failures == 2 or not again)
    tries = 1 + again
    assert stocks[:tries] == [1.0, LARGER_STOCK][:tries]
    assert set(stocks[tries:]) <= {1.0}


def test_a_point_without_any_value_is_given_up_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = Settings(metrics=("p99", "jain"))
    plan = paired_plans.plan_of(tmp_path, {"DRBL": None}, named, Looks((8, 12)))
    machine, progress = measured(plan, monkeypatch, loop.Quiet())
    assert len(machine.order) == 4  # a round: A B B A
    (reason,) = progress.given_up.values()
    assert "latency=true" in reason
    plan = paired_plans.plan_of(
        tmp_path / "b", {"DRBL": None}, Settings(metrics=("throughput", "p99")), Looks((8,))
    )
    assert not measured(plan, monkeypatch, loop.Quiet())[1].given_up


def test_one_failed_pair_among_good_ones_is_no_reason_to_give_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(key: CellKey) -> bool:
        once = key.workload == "DRBL" and key.repetition in (3, 5)
        return once or (key.workload == "DWOL" and key.repetition >= 4)

    plan = plan_of(tmp_path, {"DRBL": DEFAULT, "DWOL": DEFAULT}, repetitions=8)
    with progress_table.ProgressTable(plan.points, plan.settings) as watcher:
        _, progress = measured(plan, monkeypatch, watcher, fails)
    assert {n.split("-")[0]: c for n, c in progress.done.items()} == {"DRBL": 8, "DWOL": 5}
    assert [name.split("-")[0] for name in progress.given_up] == ["DWOL"]
    assert not progress.not_sliced


def test_when_time_is_up_it_looks_at_the_pairs_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def clock() -> float:
        return now

    class Timed(Machine):
        def pair(self, *given: Any) -> list[Cell]:
            nonlocal now
            now += 1
            return super().pair(*given)

    def spent(pairs: int, name: str) -> loop.Progress:
        nonlocal now
        now = 0.0
        plan = plan_of(tmp_path / name, {"DWOL": DEFAULT})
        machine = Timed(plan.store)
        monkeypatch.setattr(local, "measure_pair", machine.pair)
        monkeypatch.setattr(loop.time, "monotonic", clock)
        plan = replace(plan, looks=Looks(pairs=(9, 30)))
        with progress_table.ProgressTable(plan.points, plan.settings) as watcher:
            source = LocalSource(plan, cast("Session", machine))
            progress = loop.measure(source, plan.aim, pairs + 0.5, watcher)
        monkeypatch.undo()
        plan.save(progress.looks)
        return progress

    early = spent(7, "early")
    assert (early.out_of_time, early.looks.pairs, early.open) == (True, (7,), [])
    (judgement,) = compare(open_sides(tmp_path / "early", None), SETTINGS).judgements
    assert (judgement.verdict, judgement.level) == ("slower", 1 - 0.05 / 2)
    # At a look, just before one, and with too few there is nothing to see.
    for pairs in (3, 8):
        assert spent(pairs, f"at-{pairs}").looks.pairs == (9, 30)
    assert resumed((6, 7), 30) == (6, *growing(7, 30))
    assert resumed((6,), 400) == growing(6, 400)


def test_the_live_table_has_ratios_as_they_narrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(progress_table.sys.stderr, "isatty", lambda: True, raising=False)
    shown = Console(file=terminal, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(progress_table, "terminal", lambda *, error: shown)
    widths: list[float] = []

    class Watched(progress_table.ProgressTable):
        def measured(
            self, progress: loop.Progress, batch: Sequence[PairedPoint], left: float
        ) -> None:
            super().measured(progress, batch, left)
            for estimate in self._estimates.values():
                low, high = (float(x.rstrip("%,]")) for x in estimate.split("[")[1].split())
                widths.append(high - low)

    plan = plan_of(tmp_path, {"DRBL": DEFAULT}, repetitions=12)
    with Watched(plan.points, plan.settings) as watcher:
        measured(plan, monkeypatch, watcher)
    text = terminal.getvalue()
    assert "DRBL x1" in text
    assert " left" in text
    assert len(widths) == 11
    assert widths[-1] < widths[2] < widths[0]


def test_each_side_is_first_and_on_each_medium_equally_often() -> None:
    key = key_of("DRBL")
    for four in range(5):
        found = [
            tuple(set_up_order(3, key.model_copy(update={"repetition": 4 * four + n})).items())
            for n in range(1, 5)
        ]
        assert len(set(found)) == 4
        assert Counter(sides[0][0] for sides in found) == {"A": 2, "B": 2}
        assert Counter(dict(sides)["A"] for sides in found) == {"-1": 2, "-2": 2}
    orders = {
        str([set_up_order(seed, key.model_copy(update={"repetition": n})) for n in range(1, 5)])
        for seed in range(30)
    }
    assert len(orders) > 8


def test_noise_of_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(tmp_path, {"DRBL": DEFAULT}, repetitions=16, new="ext4")
    with progress_table.ProgressTable(plan.points, plan.settings) as watcher:
        measured(plan, monkeypatch, watcher)
    plan.save()
    sides = open_sides(tmp_path, None)
    (point,) = (
        p for p in measure_noise(sides, SETTINGS, 1.0, 0.05).points if p.metric == "throughput"
    )
    assert point.between_pairs is not None
    assert 0.004 < point.between_pairs < 0.02
    assert point.repetitions_in_budget == 40  # a pair takes 1.5 s for both sides
    assert point.smallest_in_budget < point.smallest_change < 0.06
