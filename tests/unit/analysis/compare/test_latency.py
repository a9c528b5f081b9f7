# SPDX-License-Identifier: GPL-2.0-only
"""Latency and fairness as metrics: their figures, why there is none, and the verdicts on them."""

import csv
import json
import math
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fscale.analysis.compare import wording
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.model import Judgement
from fscale.analysis.compare.pairs import match_cells, pair
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.compare.sliced import ratios_of
from fscale.analysis.history import index
from fscale.analysis.metrics import (
    EVERY,
    LATENCIES,
    METRICS,
    NAMED,
    VALUES,
    jain,
    slowest_worker,
    why_missing,
)
from fscale.analysis.reader import load
from fscale.analysis.report import build
from fscale.analysis.summary import summarise as summarise_cells
from fscale.cli import app
from fscale.model.errors import FscaleError
from fscale.model.histogram import summarise, summarise_blocks
from fscale.model.latency import PERCENTILES, quantile, why_none
from fscale.model.results import Cell, CellKey
from fscale.runner.latency import by_turn
from tests.support.synthetic import cell, key, sliced, write_run

pytestmark = pytest.mark.broad

MICRO = 1000  # nanoseconds


def tail(slow: int, count: int = 100_000, one_in: int = 500) -> dict[str, Any]:
    """Latencies of 10 us, of which one in so many takes `slow` microseconds."""
    rare = count // one_in
    return summarise([(10 * MICRO, count - rare), (slow * MICRO, rare)])


def timed(one: CellKey, slow: float, **changes: Any) -> Cell:
    return cell(one, 50_000, **{"latency": tail(round(slow)), **changes})


def with_workers(one: CellKey, *ops: int) -> Cell:
    """A cell whose workers did so many operations each."""
    made = cell(one, sum(ops))
    assert made.bench is not None
    for worker, done in zip(made.bench.workers, ops, strict=True):
        worker.ops = done
    return made


def sides(
    make: Callable[[CellKey, float], Cell], new: float, repetitions: int = 10, noise: float = 0.02
) -> list[list[Cell]]:
    """Both sides of an interleaved run; NEW's value is `new` times BASE's, 1,000."""
    chance = random.Random(f"{new} {repetitions}")
    return [
        [
            make(key(n, side=side), 1000 * factor * math.exp(chance.gauss(0, noise)))
            for n in range(1, repetitions + 1)
        ]
        for side, factor in (("A", 1.0), ("B", new))
    ]


def judged(both: list[list[Cell]], *metrics: str, **settings: Any) -> dict[str, Judgement]:
    own = Settings.model_validate({"metrics": metrics, "pause": 0, **settings})
    tests = pair(match_cells(*both), interleaved=True, metrics=own.metrics).tests
    return {j.metric: j for j in judge(tests, own)}


# ------------------------------------------------------------------- figures


@pytest.mark.parametrize(
    ("metric", "enough"), [("p50", 20), ("p99", 1000), ("p99.9", 10_000), ("max", 1)]
)
def test_a_quantile_needs_ten_operations_beyond_it(metric: str, enough: int) -> None:
    there = summarise([(5 * MICRO, enough)])
    assert quantile(there, metric) == pytest.approx(5 * MICRO, rel=1e-3)
    assert why_none(there, metric) == ""
    if enough > 1:
        few = summarise([(5 * MICRO, enough - 1)])
        assert quantile(few, metric) is None
        assert str(enough - 1) in why_none(few, metric)
        assert metric in why_none(few, metric)


def test_what_a_program_tells_without_a_count_is_taken() -> None:
    told = {"unit": "ns", "quantiles": {"99": 2e6}}
    assert quantile(told, "p99") == 2e6
    assert quantile(told, "p50") is None
    assert "p50" in why_none(told, "p50")


def test_the_values_of_a_cell_are_seconds_and_shares() -> None:
    one = timed(key(), 900)
    assert VALUES["p50"](one) == pytest.approx(10e-6, rel=1e-3)
    assert VALUES["p99.9"](one) == pytest.approx(900e-6, rel=1e-3)
    assert VALUES["max"](one) == pytest.approx(900e-6, rel=1e-3)
    assert set(VALUES) == set(EVERY) - {"count"}


@pytest.mark.parametrize(
    ("ops", "share", "index"),
    [
        ((10, 10), 1.0, 1.0),
        ((30, 10), 0.5, 0.8),  # 40^2 / (2 x 1000)
        ((20, 0), 0.0, 0.5),
        ((4, 4, 4, 12), 4 / 6, 24**2 / (4 * (3 * 16 + 144))),
    ],
)
def test_fairness_of_workers(ops: tuple[int, ...], share: float, index: float) -> None:
    one = with_workers(key(cores=len(ops)), *ops)
    assert slowest_worker(one) == pytest.approx(share)
    assert jain(one) == pytest.approx(index)


def test_nothing_stands_for_a_figure_that_is_not_there() -> None:
    alone, silent = cell(key(), 100), cell(key(cores=2), 100, bench=None)
    for one in (alone, silent):
        assert {metric: VALUES[metric](one) for metric in NAMED} == dict.fromkeys(NAMED)
        assert all(why_missing(one, metric) for metric in NAMED)
    assert "one worker" in why_missing(alone, "jain")
    assert "latency=true" in why_missing(alone, "p99")


# -------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("metric", ["p99.9", "max"])
@pytest.mark.parametrize(
    ("new", "verdict"), [(1.0, "same"), (1.05, "same"), (1.5, "slower"), (0.6, "faster")]
)
def test_a_longer_tail_is_slower(metric: str, new: float, verdict: str) -> None:
    found = judged(sides(timed, new), metric)[metric]
    assert found.verdict == verdict
    assert found.margin == 0.1
    assert found.ratio == pytest.approx(new, rel=0.03)
    assert found.worse == (verdict == "slower")


def test_throughput_and_the_median_do_not_see_a_tail() -> None:
    found = judged(sides(timed, 1.5), "throughput", "p50", "p99", "p99.9")
    assert {metric: j.verdict for metric, j in found.items()} == {
        "throughput": "same",
        "p50": "same",
        "p99": "same",
        "p99.9": "slower",
    }


def test_a_latency_has_a_margin_of_its_own() -> None:
    both = sides(timed, 1.2)
    assert judged(both, "max")["max"].verdict == "slower"
    assert judged(both, "max", margin=0.5)["max"].verdict == "slower"
    wide = judged(both, "max", latency_margin=0.3)["max"]
    assert (wide.verdict, wide.margin) == ("same", 0.3)


@pytest.mark.parametrize(("slow", "verdict"), [(1.0, "same"), (0.6, "slower"), (1.6, "faster")])
def test_less_fairness_is_slower(slow: float, verdict: str) -> None:
    def shared(one: CellKey, value: float) -> Cell:
        return with_workers(one.model_copy(update={"cores": 2}), 2000, round(value))

    found = judged(sides(shared, slow), "slowest-worker", "jain")
    assert {j.verdict for j in found.values()} == {verdict} or (
        verdict == "faster" and found["slowest-worker"].verdict == verdict
    )
    assert found["jain"].margin == 0.05


def test_a_worker_without_an_operation_is_worse_than_any() -> None:
    def starving(one: CellKey, value: float) -> Cell:
        slowest = round(value) if one.side == "A" else 0
        return with_workers(one.model_copy(update={"cores": 2}), 2000, slowest)

    found = judged(sides(starving, 1.0), "slowest-worker")["slowest-worker"]
    assert found.verdict == "slower"
    assert set(found.new.values.values()) == {0.5 / 1000}


def test_few_repetitions_are_not_judged() -> None:
    both = sides(timed, 3.0, repetitions=4)
    tests = pair(match_cells(*both), interleaved=True, metrics=("p99.9",)).tests
    with pytest.raises(
        FscaleError, match=r"too few repetitions: .* --max-minutes or --repetitions \d+$"
    ):
        judge(tests, Settings(metrics=("p99.9",)))
    (found,) = judge(tests, Settings(metrics=("p99.9",)), refuse=False)
    assert (found.verdict, found.more_repetitions) == ("undecided", 1)


def test_they_are_judged_only_where_they_are_named() -> None:
    both = sides(timed, 2.0)
    tests = pair(match_cells(*both), interleaved=True).tests
    assert {test.metric for test in tests} == {"throughput", "per-cpu-second"}
    assert not set(METRICS) & set(NAMED)


def test_disturbed_repetitions_that_were_not_interleaved_tell_nothing_of_a_tail() -> None:
    """A little load of others makes any tail, so its share bounds nothing."""

    def beside(one: CellKey, value: float) -> Cell:
        return timed(one, value, disturbed="others took 0.03 CPUs", extra={"others_cpus": 0.03})

    base, new = sides(beside, 3.0)
    for own in (base, new):
        for one in own:
            one.key = one.key.model_copy(update={"side": None})
    tests = pair(match_cells(base, new), metrics=("p99.9", "throughput")).tests
    found = {j.metric: j.verdict for j in judge(tests, Settings(metrics=("p99.9",)))}
    assert found["p99.9"] == "undecided"
    tests = pair(match_cells(base, new), interleaved=True, metrics=("p99.9",)).tests
    assert judge(tests, Settings(metrics=("p99.9",)))[0].verdict == "slower"


# ---------------------------------------------------------------- no latencies


def run(directory: Path, make: Callable[[CellKey], Cell], repetitions: int = 6) -> Path:
    cells = [make(key(n)) for n in range(1, repetitions + 1)]
    return write_run(directory, cells, workloads=["DRBL"], filesystems=["ext4"])


def fscale(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def refusal(base: Path, new: Path, *metrics: str) -> str:
    words = [word for metric in metrics for word in ("--metric", metric)]
    ended = fscale("compare", base, new, *words)
    assert isinstance(ended.exception, FscaleError), ended.output
    return str(ended.exception)


def test_a_metric_that_no_cell_has_is_refused_with_the_way_to_record_it(tmp_path: Path) -> None:
    plain = [run(tmp_path / name, lambda k: cell(k, 1000.0)) for name in "ab"]
    said = refusal(*plain, "throughput", "p99")
    assert "p99" in said and "latency=true" in said
    assert "one worker" in refusal(*plain, "jain")
    short = [run(tmp_path / name, lambda k: cell(k, 10, latency=tail(20, 900, 9))) for name in "cd"]
    assert "900" in refusal(*short, "p99")
    good = fscale("compare", *short, "--metric", "p50")
    assert good.exit_code == 0, good.output


def test_a_point_without_it_is_undecided_and_says_why(tmp_path: Path) -> None:
    def some(one: CellKey) -> Cell:
        return timed(one, 500)

    cells = [some(key(n, cores=c)) for n in range(1, 9) for c in (1, 2)]
    few = [cell(key(n, cores=4), 10, latency=tail(20, 900, 9)) for n in range(1, 9)]
    runs = [
        write_run(tmp_path / name, [*cells, *few], workloads=["DRBL"], filesystems=["ext4"])
        for name in "ab"
    ]
    comparison = compare(open_sides(*runs), Settings(metrics=("p99.9",)))
    verdicts = {j.subject.cores[0]: j for j in comparison.judgements}
    assert {cores: j.verdict for cores, j in verdicts.items()} == {
        1: "same",
        2: "same",
        4: "undecided",
    }
    assert "900" in verdicts[4].reason
    assert verdicts[4].base.median is None
    assert comparison.tests == 2


# --------------------------------------------------------------------- slices


def in_turns(one: CellKey, slow: float, blocks: int = 16) -> Cell:
    """A cell in slices: each block has 2,000 operations of 10 us, one in 100 takes `slow`."""
    turns = sliced(one, [1e5] * blocks)
    counts = {10 * MICRO: 1980, round(slow): 20}
    return turns.model_copy(update={"latency": summarise_blocks([counts] * blocks)})


def test_a_pair_in_slices_has_the_ratio_of_its_quantiles() -> None:
    base, new = in_turns(key(side="A"), 50_000), in_turns(key(side="B"), 80_000)
    found = ratios_of({1: base}, {1: new}, "p99.9")[1]
    assert found.log == pytest.approx(math.log(1.6), abs=2e-3)
    assert (found.blocks, found.seconds) == (16, 0.018)
    assert 0 < found.error < 0.001  # all blocks are the same: only a bucket's width is left
    assert ratios_of({1: base}, {1: new}, "p50")[1].log == 0


def test_the_error_of_a_quantile_comes_from_its_blocks() -> None:
    same = summarise_blocks([{100_000: 2000}] * 8)
    rough = summarise_blocks([{100_000 + 20_000 * (n % 2): 2000 + n} for n in range(8)])
    assert same["errors"]["50"] < 0.001
    assert rough["errors"]["50"] > 0.1
    assert same["count"] == 16_000
    assert same["quantiles"]["50"] == pytest.approx(100_000, rel=1e-3)


def test_pairs_in_slices_are_judged_by_their_quantiles() -> None:
    def made(one: CellKey, value: float) -> Cell:
        return in_turns(one, 50 * value)

    found = judged(sides(made, 1.5), "p99.9", "p99", "throughput")
    assert found["p99.9"].verdict == "slower"
    assert found["p99.9"].pairs == 10
    assert found["p99.9"].margin == 0.1
    assert found["throughput"].verdict == "same"
    assert judged(sides(made, 1.0), "p99.9")["p99.9"].verdict == "same"
    with pytest.raises(FscaleError, match="too few pairs"):
        judged(sides(made, 1.5, repetitions=3), "p99.9")


def test_turns_without_latencies_of_their_own_have_none() -> None:
    """The latencies of all turns have those of the turns that warm the caches, too."""
    older = in_turns(key(side="A"), 50_000)
    assert older.latency is not None
    older = older.model_copy(
        update={"latency": {k: v for k, v in older.latency.items() if k != "errors"}}
    )
    assert VALUES["p99"](older) is None
    assert not ratios_of({1: older}, {1: older}, "p99")
    new = in_turns(key(side="A", cores=2), 50_000)
    for metric in ("max", "slowest-worker", "jain"):
        assert VALUES[metric](new) is None
        assert "--whole" in why_missing(new, metric)


def test_the_file_of_turns(tmp_path: Path) -> None:
    file = tmp_path / "turns.hist"
    triples = [(1, 500, 3), (1, 600, 1), (3, 500, 2)]
    file.write_bytes(b"".join(n.to_bytes(8, "little") for triple in triples for n in triple))
    assert by_turn(file) == {1: {500: 3, 600: 1}, 3: {500: 2}}
    file.write_bytes(b"")
    assert by_turn(file) == {}


# -------------------------------------------------------------- where they show


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.5234e-6, "4.523us"),
        (0.0125, "12.5ms"),
        (3.0, "3s"),
        (420e-9, "420ns"),
        (None, "-"),
        (1e-6, "1us"),
    ],
)
def test_a_latency_has_its_unit(value: float | None, text: str) -> None:
    assert wording.figure("p99", value) == text


def test_every_output_of_a_comparison_has_them(tmp_path: Path) -> None:
    base = run(tmp_path / "base", lambda k: timed(k, 500 + k.repetition))
    new = run(tmp_path / "new", lambda k: timed(k, 900 + k.repetition))
    names = {form: tmp_path / form for form in ("junit", "ktap", "markdown", "mail", "html")}
    written = [word for form, path in names.items() for word in (f"--{form}", path)]
    ended = fscale("compare", base, new, "--metric", "p99.9", *written)
    assert ended.exit_code == 1, ended.output
    for form, path in names.items():
        assert "p99.9" in path.read_text(), form
    assert "| 503.6us " in names["markdown"].read_text()
    assert json.loads(fscale("compare", base, new, "--metric", "p99.9", "--json").stdout)[
        "settings"
    ]["metrics"] == ["p99.9"]


def test_the_report_and_the_exports_have_them(tmp_path: Path) -> None:
    cells = [timed(key(n, cores=c), 500) for n in (1, 2) for c in (1, 2)]
    directory = write_run(tmp_path / "run", cells, workloads=["DRBL"], filesystems=["ext4"])
    page = build(directory).read_text()
    assert "p99.9 µs" in page and "slowest-worker" in page
    rows = list(csv.DictReader((directory / "figures.csv").open()))
    assert float(rows[0]["latency_p99_9_seconds"]) == pytest.approx(500e-6, rel=1e-3)
    assert [row["jain"] for row in rows] == ["", "1.0"]
    table = fscale("export", directory, "--format", "csv").stdout
    (one, *_) = csv.DictReader(table.splitlines())
    assert float(one["latency_max_seconds"]) == pytest.approx(500e-6, rel=1e-3)
    assert one["slowest_worker"] == ""
    text = fscale("export", directory, "--format", "openmetrics").stdout
    assert 'metric="p99.9"' in text and 'metric="jain"' in text
    drawn = fscale("show", directory, "--metric", "p99.9")
    assert drawn.exit_code == 0, drawn.output
    assert "500" in drawn.stdout and "us" in drawn.stdout
    for metric, part in (("jain", "1"), ("max", "us")):
        assert part in fscale("show", directory, "--metric", metric).stdout


def test_the_report_of_a_paired_run_has_the_verdicts_by_its_metrics(tmp_path: Path) -> None:
    base, new = sides(timed, 1.5)
    directory = write_run(tmp_path / "run", [*base, *new], workloads=["DRBL"], filesystems=["ext4"])
    record = {"schema": 1, "base": "ext4", "new": "ext4:mount=x", "looks": [], "pair_looks": []}
    for metrics, there in (({}, False), ({"metrics": ["p99.9"]}, True)):
        (directory / "ab.json").write_text(json.dumps(record | metrics))
        page = build(directory).read_text()
        verdicts = page.partition('aria-label="Table of verdicts"')[2].partition("</table>")[0]
        assert ("<td>p99.9</td>" in verdicts) is there
        assert ("slower" in verdicts) is there


def test_show_says_why_there_is_none(tmp_path: Path) -> None:
    directory = run(tmp_path / "run", lambda k: cell(k, 1000.0))
    ended = fscale("show", directory, "--metric", "p99")
    assert isinstance(ended.exception, FscaleError)
    assert "latency=true" in str(ended.exception)
    wrong = fscale("show", directory, "--metric", "p98")
    assert "p99.9" in str(wrong.exception)


def test_a_report_says_which_quantile_is_left_out(tmp_path: Path) -> None:
    directory = run(tmp_path / "run", lambda k: cell(k, 10, latency=tail(20, 900, 9)))
    said = [w for w in load(directory).run.warnings if "left out" in w]
    assert [metric for metric in LATENCIES if any(f" {metric} " in w for w in said)] == [
        "p99",
        "p99.9",
    ]
    assert all("900" in w for w in said)
    assert set(PERCENTILES) == set(LATENCIES)


def test_the_history_knows_the_direction_of_a_latency(tmp_path: Path) -> None:
    for n in range(12):
        slow = 500 if n < 6 else 900
        write_run(
            tmp_path / "runs" / f"{n}",
            [timed(key(r), slow + r + n % 3) for r in (1, 2)],
            workloads=["DRBL"],
            filesystems=["ext4"],
            id=f"run-{n}",
            started=f"2026-01-{n + 1:02}T00:00:00Z",
        )
    db = tmp_path / "db.sqlite"
    assert fscale("history", "rebuild", tmp_path / "runs", "--db", db).exit_code == 0
    ended = fscale("history", "trend", "--metric", "p99.9", "--db", db, "--json")
    (trend,) = json.loads(ended.stdout)["trends"]
    (step,) = trend["steps"]
    assert (step["first"]["run"], step["worse"]) == ("run-6", True)
    site = tmp_path / "site"
    done = fscale("history", "report", "--metric", "p99.9", "--db", db, "--output", site)
    assert done.exit_code == 0, done.output
    assert 'class="worse"' in (site / "index.html").read_text()
    assert "us</td>" in (site / "index.html").read_text()


def test_repetitions_without_a_percentile_leave_it_undecided() -> None:
    """Those that were too slow for a p99.9 must not drop out of the side."""

    def slow(one: CellKey, value: float) -> Cell:
        count = 9_900 if one.side == "B" and one.repetition > 6 else 10_400
        return timed(one, value, latency=tail(round(value), count=count))

    (judgement,) = judged(sides(slow, 1.0, repetitions=20), "p99.9").values()
    assert judgement.verdict == "undecided"
    assert judgement.reason.startswith("NEW: 14 of 20 good repetitions have no value: fewer than")
    assert judgement.more_repetitions is None


@pytest.mark.parametrize(
    ("metric", "lost"),
    [
        ("per-cpu-second", {"own_cpu_seconds": None}),
        ("jain", {"bench": None}),
        ("count", {"counts": {"other": 1.0}}),
    ],
)
def test_a_gap_in_any_metric_leaves_it_undecided(metric: str, lost: dict[str, Any]) -> None:
    def measured(one: CellKey, value: float) -> Cell:
        one = one.model_copy(
            update={"cores": 2, "profile": "counts" if metric == "count" else None}
        )
        made = cell(one, value, counts={"event": 10.0, "other": 1.0})
        return made.model_copy(update=lost if one.side == "A" and one.repetition == 3 else {})

    found = judged(sides(measured, 1.0), metric)
    gap = found["count:event" if metric == "count" else metric]
    assert gap.verdict == "undecided"
    assert gap.reason.startswith("BASE: 1 of 10 good repetitions have no value: ")


def test_a_side_without_a_metric_is_told() -> None:
    def measured(one: CellKey, value: float) -> Cell:
        return cell(one, value, **({"own_cpu_seconds": None} if one.side == "B" else {}))

    found = judged(sides(measured, 1.0), *METRICS)
    assert found["per-cpu-second"].verdict == "undecided"
    assert found["per-cpu-second"].reason == "NEW: CPU time was not recorded"
    assert found["throughput"].verdict == "same"


def test_a_point_with_a_gap_is_no_figure_of_a_curve_or_history(tmp_path: Path) -> None:
    cells = [
        timed(key(n), 900, latency=tail(900, count=10_400 - 500 * (n == 3))) for n in (1, 2, 3)
    ]
    results = load(write_run(tmp_path, cells))
    assert not summarise_cells(results.scored, metric="p99.9")
    assert summarise_cells(results.scored, metric="p99")[0].n == 3
    metrics = {row[6] for row in index._points(results, defaultdict(str))}
    assert "p99" in metrics
    assert "p99.9" not in metrics
