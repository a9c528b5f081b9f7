# SPDX-License-Identifier: GPL-2.0-only
"""From run directories to verdicts, outputs and exit codes."""

import json
import math
import random
import shlex
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from junitparser import JUnitXml
from tap.parser import Parser as TapParser
from typer.testing import CliRunner, Result

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.model import Comparison
from fscale.analysis.compare.pairs import match_cells, pair
from fscale.analysis.compare.repetitions import minimum_repetitions
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.metrics import COUNT, PEAK, SPEEDUP, THROUGHPUT
from fscale.cli import app
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey, KernelBuild, Machine
from tests.support import synthetic
from tests.support.synthetic import cell, descriptor, grid, machine, write_run

pytestmark = pytest.mark.broad

Rate = Callable[[CellKey], float]


def noisy(level: Rate, spread: float, seed: str) -> Rate:
    return lambda key: level(key) * math.exp(random.Random(f"{seed} {key.id}").gauss(0, spread))


def flat(key: CellKey) -> float:
    return 1e5 * key.cores


def run(directory: Path, rate: Rate, repetitions: int = 12, **changes: object) -> Path:
    cells = grid([1, 2, 4], repetitions, ["MWCL", "DRBL"], ["ext4"], rate=rate)
    return write_run(directory, cells, filesystems=["ext4"], cpus=4, **changes)


@pytest.fixture
def regression(tmp_path: Path) -> tuple[Path, Path]:
    """MWCL at 4 cores is 25% slower in NEW; all else is the same."""

    def slower(key: CellKey) -> float:
        return flat(key) * (0.75 if (key.workload, key.cores) == ("MWCL", 4) else 1)

    base = run(tmp_path / "base", noisy(flat, 0.01, "base"), id="v1")
    return base, run(tmp_path / "new", noisy(slower, 0.01, "new"), id="v2")


def fscale(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def judged(base: Path, new: Path, **settings: object) -> Comparison:
    return compare(open_sides(base, new), Settings(**settings))


def test_only_the_changed_cell_and_its_curve_are_slower(regression: tuple[Path, Path]) -> None:
    comparison = judged(*regression)
    slower = {(j.subject.workload, j.subject.cores, j.metric) for j in comparison.judgements
              if j.verdict == "slower"}  # fmt: skip
    curve = (1, 2, 4)
    assert slower == {
        ("MWCL", (4,), THROUGHPUT),
        ("MWCL", (4,), "per-cpu-second"),
        ("MWCL", curve, SPEEDUP),
        ("MWCL", curve, "gain-per-doubling"),
    }
    assert comparison.count("faster") == 0
    assert all(j.verdict == "same" for j in comparison.judgements if j.subject.workload == "DRBL")


def test_exit_codes(regression: tuple[Path, Path], tmp_path: Path) -> None:
    base, new = regression
    assert fscale("compare", base, new).exit_code == 1
    assert fscale("compare", base, base).exit_code == 0
    for wrong in ([base, tmp_path / "none"], [base], [base, new, "--metric", "speed"]):
        done = fscale("compare", *wrong)
        assert isinstance(done.exception, FscaleError)
        assert done.exception.code == 2


def test_a_run_and_itself_need_no_more_repetitions(tmp_path: Path) -> None:
    base = run(tmp_path / "base", noisy(flat, 0.3, "a"))
    copy = shutil.copytree(base, tmp_path / "copy")
    other = run(tmp_path / "other", noisy(flat, 0.3, "b"))
    assert any(j.more_repetitions for j in judged(base, other).judgements)
    for new in (base, copy):
        comparison = judged(base, new)
        assert comparison.count("undecided") > 0
        assert not any(j.more_repetitions for j in comparison.judgements)
        assert any("the same measurements" in warning for warning in comparison.warnings)


def test_cells_that_failed_say_nothing_of_hotplug(same: tuple[Path, Path]) -> None:
    base, new = same
    alter(base, "*", 72, cpu_control="hotplug")
    alter(new, "*", 72, **BROKEN, cpu_control="affinity")
    assert not any("hotplug" in warning for warning in judged(base, new).warnings)
    alter(new, "*", 72, status="ok", reason=None, cpu_control="affinity")
    assert any("hotplug" in warning for warning in judged(base, new).warnings)


def test_all_that_is_refused_is_allowed_by_the_words_of_the_refusal(tmp_path: Path) -> None:
    base = defined(tmp_path / "base", {"Block size": "4096", "Journal": "64M", "it's": "1"})
    new = defined(tmp_path / "new", {"Block size": "1024", "Journal": "16M", "it's": "2"})
    refusal = str(fscale("compare", base, new).exception)
    words = shlex.split(refusal[refusal.index("--allow-different") :])
    assert words.count("--allow-different") == 3
    assert fscale("compare", base, new, *words).exception is None


def test_too_few_repetitions_are_refused_with_the_number(tmp_path: Path) -> None:
    base = run(tmp_path / "base", noisy(flat, 0.01, "a"), repetitions=3)
    # Two metrics of six points, and three tests of two curves.
    needed = minimum_repetitions(Settings(), 18, interleaved=False)
    with pytest.raises(FscaleError, match=rf"at most 3 per side.*--repetitions {needed}$"):
        judged(base, base)
    base = run(tmp_path / "less", noisy(flat, 0.01, "a"), repetitions=needed - 1)
    with pytest.raises(FscaleError, match=f"among 18 tests .* --repetitions {needed}$"):
        judged(base, base)
    base = run(tmp_path / "enough", noisy(flat, 0.01, "a"), repetitions=needed)
    assert judged(base, base).repetitions_needed == needed


def test_missing_and_failed_cells_are_named(regression: tuple[Path, Path]) -> None:
    base, new = regression
    for path in (new / "cells").glob("DRBL-ext4-ram-buffered-4c-*"):
        path.unlink()
    broken = sorted((new / "cells").glob("DRBL-ext4-ram-buffered-2c-*"))[0]
    data = json.loads(broken.read_text()) | {"status": "error", "reason": "EIO"}
    broken.write_text(json.dumps(data))
    data = json.loads((new / "run.json").read_text())
    (new / "run.json").write_text(json.dumps(data | {"planned_cells": 60}))
    comparison = judged(base, new)
    assert len(comparison.missing_in_new) == 1
    assert comparison.missing_in_new[0].startswith("DRBL ext4 ram buffered 4c")
    assert any("1 of" in w and "NEW gave no value" in w for w in comparison.warnings)
    (two,) = (
        j
        for j in comparison.judgements
        if (j.subject.workload, j.subject.cores, j.metric) == ("DRBL", (2,), THROUGHPUT)
    )
    assert len(two.new.values) == 11
    assert two.new.unusable == 1
    assert fscale("compare", base, new).output.count("missing in NEW") == 1


def alter(run_dir: Path, names: str, first: int = 12, **changes: object) -> None:
    """Change the first cells of a point."""
    paths = sorted((run_dir / "cells").glob(f"{names}-*"))[:first]
    bench_changes = changes.pop("bench", {})
    assert isinstance(bench_changes, dict)
    assert len(paths) == first
    for path in paths:
        data = json.loads(path.read_text())
        bench = {"bench": data["bench"] | bench_changes}
        path.write_text(json.dumps(data | changes | bench))


@pytest.fixture
def same(tmp_path: Path) -> tuple[Path, Path]:
    return (
        run(tmp_path / "base", noisy(flat, 0.01, "a")),
        run(tmp_path / "new", noisy(flat, 0.01, "b")),
    )


POINT = "DRBL-ext4-ram-buffered-2c"
BROKEN = {"status": "error", "reason": "pread share: EIO"}


@pytest.mark.parametrize("count", [1, 12])
def test_what_breaks_is_a_failure(same: tuple[Path, Path], tmp_path: Path, count: int) -> None:
    base, new = same
    assert fscale("compare", base, new).exit_code == 0
    alter(new, POINT, count, **BROKEN)
    files = {n: tmp_path / f"out.{n}" for n in ("junit", "markdown", "mail", "html", "ktap")}
    done = fscale("compare", base, new, *(x for n, p in files.items() for x in (f"--{n}", p)))
    assert done.exit_code == 1
    assert "1 broken, 0 slower" in done.output
    printed = fscale("compare", base, new, "--json").stdout
    (point,) = Comparison.model_validate_json(printed).health
    assert (point.kind, point.new.broken, point.base.good) == ("broken", count, 12)
    assert point.reason == "pread share: EIO"
    suite = next(iter(JUnitXml.fromfile(str(files["junit"]))))
    assert (suite.errors, suite.failures) == (1, 0)
    (bad,) = [t for t in TapParser().parse_file(files["ktap"]) if t.category == "test" and not t.ok]
    assert bad.directive.text.startswith("ERROR broken")
    for path in files.values():
        assert "pread share: EIO" in " ".join(path.read_text().split())
    assert files["mail"].read_text().startswith("fscale found 1 point")
    back = fscale("compare", new, base)
    assert back.exit_code == 0
    assert "1 mended, 0 slower" in back.output


def test_everything_broken_is_a_failure_and_no_lack_of_repetitions(
    same: tuple[Path, Path],
) -> None:
    base, new = same
    alter(new, "*", 72, **BROKEN)
    done = fscale("compare", base, new)
    assert done.exit_code == 1
    assert "6 broken" in done.output
    assert isinstance(fscale("compare", new, new).exception, FscaleError)


def test_a_point_that_was_planned_and_not_measured_is_lost(same: tuple[Path, Path]) -> None:
    base, new = same
    for path in (new / "cells").glob(f"{POINT}-*"):
        path.unlink()
    comparison = judged(base, new)
    assert [point.kind for point in comparison.health] == ["lost"]
    assert comparison.missing_in_new == []
    assert fscale("compare", base, new).exit_code == 1
    # A run that never asked for it did all that it was to do.
    data = json.loads((new / "run.json").read_text())
    (new / "run.json").write_text(json.dumps(data | {"planned_cells": 60}))
    assert judged(base, new).health == []
    assert len(judged(base, new).missing_in_new) == 1
    assert fscale("compare", base, new).exit_code == 0


def test_disturbed_repetitions_do_not_raise_an_alarm_between_runs(tmp_path: Path) -> None:
    base = run(tmp_path / "base", noisy(flat, 0.01, "a"))
    cells = grid([1], 12, ["MWCL"], ["ext4"], rate=noisy(lambda k: 0.7 * flat(k), 0.01, "b"))
    for one in cells[:6]:
        one.disturbed = "others used 0.5 CPUs"
    new = write_run(tmp_path / "new", cells, filesystems=["ext4"])
    judgement = next(j for j in judged(base, new).judgements if j.metric == THROUGHPUT)
    assert judgement.verdict == "undecided"
    assert "50%" in judgement.reason
    cpu = next(j for j in judged(base, new).judgements if j.metric == "per-cpu-second")
    assert cpu.verdict == "slower"
    # It is known that others took 3%, which is no reason to be slower by 30%.
    for one in cells[:6]:
        one.extra["others_cpus"] = 0.03
    new = write_run(tmp_path / "known", cells, filesystems=["ext4"])
    known = next(j for j in judged(base, new).judgements if j.metric == THROUGHPUT)
    assert (known.verdict, known.new.disturbed, known.new.lost) == ("slower", 6, 0.03)


def counted(directory: Path, counts: dict[str, list[float]]) -> Path:
    """A run whose counting repetitions have these counts per operation."""
    keys = [synthetic.key(r, workload="MWCL", profile="counts") for r in range(1, 11)]
    cells = [
        cell(key, 1e5, counts={name: values[key.repetition - 1] for name, values in counts.items()})
        for key in keys
    ]
    return write_run(directory, cells, filesystems=["ext4"])


def test_more_counted_work_is_slower_and_rare_events_are_not(tmp_path: Path) -> None:
    dirty = [4.0336 + 0.00003 * i for i in range(10)]
    base = counted(
        tmp_path / "base", {"dirty": dirty, "handle": [1.0] * 10, "new": [0.0] * 10,
                            "rare": [0.0001] * 10}
    )  # fmt: skip
    new = counted(
        tmp_path / "new", {"dirty": [x + 0.1 for x in dirty], "handle": [1.0] * 10,
                           "new": [1.0] * 10, "rare": [0.0003] * 10}
    )  # fmt: skip
    verdicts = {j.metric: j.verdict for j in judged(base, new).judgements}
    assert verdicts == {
        COUNT + "dirty": "slower",
        COUNT + "handle": "same",
        COUNT + "new": "slower",
        COUNT + "rare": "same",
    }


FS = {
    "mkfs": ["mkfs.ext4", "{device}"],
    "mount_options": ["noatime"],
    "kernel": "ext4",
    "title": "ext4",
}
RAM = {"kind": "loop", "size": "25%"}


def defined(directory: Path, geometry: dict[str, str] | None = None, **changes: object) -> Path:
    cells = grid([1], 10, ["DRBL"], ["ext4"], rate=noisy(flat, 0.01, "a"))
    for one in cells:
        one.geometry = geometry
    fields: dict[str, object] = {
        "suite": {"warmup": 0.1, "max_stock": None, "latency": False, "order": "random"},
        "filesystems": {"ext4": FS},
        "media": {"ram": RAM},
        "versions": {"fscale-bench": "sha256:1", "mkfs of ext4": "1.47"},
        "workloads": [descriptor("DRBL").model_dump()],
        **changes,
    }
    write_run(directory, cells)
    data = json.loads((directory / "run.json").read_text())
    fields = {k: v.model_dump() if isinstance(v, Machine) else v for k, v in fields.items()}
    (directory / "run.json").write_text(json.dumps(data | fields))
    return directory


def building(debug: list[str], **changes: object) -> Machine:
    build = KernelBuild(version="#1 SMP", id="ab", taint=0, debug=debug, debug_from="signs")
    return machine(2).model_copy(update={"build": build} | changes)


@pytest.mark.parametrize(
    ("base", "new", "key"),
    [
        ({}, {"suite": {"warmup": 1.0}}, "suite.warmup"),
        ({}, {"suite": {"max_stock": 9}}, "suite.max_stock"),
        ({}, {"suite": {"latency": True}}, "suite.latency"),
        ({}, {"filesystems": {"ext4": FS | {"mount_options": []}}},
         "filesystems.ext4.mount_options"),
        ({}, {"filesystems": {"ext4": FS | {"mkfs": ["mke2fs", "{device}"]}}},
         "filesystems.ext4.mkfs"),
        ({}, {"media": {"ram": RAM | {"size": "50%"}}}, "media.ram.size"),
        ({"media": {"ram": {"kind": "device", "path": "/dev/disk/by-id/a"}}},
         {"media": {"ram": {"kind": "device", "path": "/dev/disk/by-id/b"}}}, "media.ram.path"),
        ({}, {"workloads": [descriptor("DRBL").model_dump() | {"operation": "mmap"}]},
         "workloads.DRBL.operation"),
        ({"machine": building([])}, {"machine": building(["KASAN"])}, "machine.debug"),
        ({"geometry": {"agcount": "4"}}, {"geometry": {"agcount": "16"}},
         "filesystems.ext4.geometry.agcount"),
    ],
)  # fmt: skip
def test_figures_that_mean_different_things_are_refused(
    tmp_path: Path, base: dict[str, object], new: dict[str, object], key: str
) -> None:
    sides = defined(tmp_path / "base", **base), defined(tmp_path / "new", **new)
    refused = fscale("compare", *sides)
    assert isinstance(refused.exception, FscaleError)
    assert refused.exception.code == 2
    assert f"different things: {key}: " in str(refused.exception)
    assert str(refused.exception).endswith(f"--allow-different {key}")
    for allowed in (key, key.rpartition(".")[0]):
        done = fscale("compare", *sides, "--allow-different", allowed)
        assert done.exit_code == 0
        assert f"the sides differ in {key}: " in done.output


def test_kinds_of_machines_never_mix(tmp_path: Path) -> None:
    base, new = (
        defined(tmp_path / kind, machine=building([], guest={"accelerator": kind, "label": kind}))
        for kind in ("tcg-icount", "simulated")
    )
    done = fscale("compare", base, new, "--allow-different", "machine")
    assert isinstance(done.exception, FscaleError)
    assert "cannot be compared" in str(done.exception)
    assert fscale("compare", new, new).exit_code == 0


def test_a_peak_that_moves_is_found(tmp_path: Path) -> None:
    def early(key: CellKey) -> float:
        return {1: 1e5, 2: 1.8e5, 4: 1.2e5}[key.cores]

    base = run(tmp_path / "base", noisy(flat, 0.01, "a"))
    new = run(tmp_path / "new", noisy(early, 0.01, "b"))
    peaks = [j for j in judged(base, new).judgements if j.metric == PEAK]
    assert [(j.base.median, j.new.median, j.verdict) for j in peaks] == [(4, 2, "slower")] * 2


def test_a_cell_without_a_number_is_unusable() -> None:
    cells = grid([1], 10, ["MWCL"], ["ext4"])
    cells[3].ops_per_second = math.inf
    cells[4].own_cpu_seconds = 0.0
    tests = {t.metric: t for t in pair(match_cells(cells, cells)).tests}
    assert len(tests[THROUGHPUT].base.values) == 9
    assert tests[THROUGHPUT].base.unusable == 1
    assert tests["per-cpu-second"].base.unusable == 1


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.rows += tag == "tr"
        assert not any(name in ("src",) for name, _ in attrs), "the page needs another file"


def test_outputs(regression: tuple[Path, Path], tmp_path: Path) -> None:
    base, new = regression
    files = {n: tmp_path / f"out.{n}" for n in ("junit", "markdown", "mail", "html", "ktap")}
    done = fscale("compare", base, new, *(x for n, p in files.items() for x in (f"--{n}", p)))
    assert done.exit_code == 1
    assert "MWCL" in done.output
    printed = fscale("compare", base, new, "--json").stdout
    comparison = Comparison.model_validate_json(printed)
    suite = next(iter(JUnitXml.fromfile(str(files["junit"]))))
    assert suite.tests == len(comparison.judgements)
    assert suite.failures == comparison.count("slower") == 4
    assert suite.skipped == comparison.count("undecided")
    assert files["ktap"].read_text().startswith("KTAP version 1\n")
    tests = [t for t in TapParser().parse_file(files["ktap"]) if t.category == "test"]
    assert [t.number for t in tests] == list(range(1, suite.tests + 1))
    assert sum(not t.ok for t in tests) == 4
    assert sum(t.skip for t in tests) == suite.skipped
    lines = files["mail"].read_text().splitlines()
    assert max(map(len, lines)) <= 72
    assert lines[0].startswith("fscale noticed a -2")
    assert "test machine: synthetic-test-host, 4 x made-up CPU" in lines
    assert lines[-2:] == ["To reproduce:", "  bin/fscale run quick --output 'results/x y'"]
    markdown = files["markdown"].read_text()
    assert markdown.count("| **slower** |") == 2 * 4
    tags = Tags()
    tags.feed(files["html"].read_text())
    assert tags.rows == 1 + len(comparison.judgements) + 3  # and both sides beneath a head


def test_json_is_as_the_schema_says(regression: tuple[Path, Path]) -> None:
    import jsonschema  # noqa: PLC0415

    done = fscale("compare", *regression, "--json")
    schema = json.loads(fscale("schema", "compare").output)
    jsonschema.validate(json.loads(done.output), schema)


def test_tags_stand_for_directories(regression: tuple[Path, Path], tmp_path: Path) -> None:
    db = tmp_path / "h.sqlite"
    for path, name in zip(regression, ("good", "bad"), strict=True):
        assert fscale("history", "tag", path, name, "--db", db).exit_code == 0
    assert fscale("compare", "good", "bad", "--db", db).exit_code == 1
