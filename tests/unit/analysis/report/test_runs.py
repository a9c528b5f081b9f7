# SPDX-License-Identifier: GPL-2.0-only
"""Several runs in one report: their names, what is refused, the curves, the table."""

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.labels import DEFAULT, MOST, labels
from fscale.analysis.members import MAX_RUNS, NamedRun, open_members
from fscale.analysis.metrics import THROUGHPUT
from fscale.analysis.plotsettings import PlotSettings
from fscale.analysis.reader import load
from fscale.analysis.report import build, build_several, interactive
from fscale.analysis.report.looks import by_run, looks
from fscale.analysis.report.section import Report
from fscale.analysis.report.sidebyside import SubjectRow, rows
from fscale.cli import app
from fscale.model.errors import Exit, FscaleError
from fscale.model.results import CellKey, KernelBuild
from tests.support.pages import text_of
from tests.support.synthetic import cell, cpus_of, grid, key, machine, write_run

pytestmark = pytest.mark.slow

TWO = ("ext4", "xfs")


def run(
    directory: Path,
    factor: float = 1.0,
    *,
    kernel: str = "6.1.0-9-amd64",
    repetitions: int = 2,
    filesystems: tuple[str, ...] = TWO,
    cores: tuple[int, ...] = (1, 2),
    about: dict[str, Any] | None = None,
    **changes: Any,
) -> Path:
    """DRBL with rates of 1000 a core times `factor`, a per mille more each repetition."""

    def rate(one: CellKey) -> float:
        return factor * 1000 * one.cores * (1 + 0.001 * one.repetition)

    cells = grid(cores, repetitions, ("DRBL",), filesystems, rate=rate)
    there = machine(max(cores)).model_copy(update={"kernel": kernel, **(about or {})})
    fields = {"workloads": ("DRBL",), "filesystems": filesystems, "machine": there} | changes
    return write_run(directory, cells, **fields)


def named(*paths: Path, given: tuple[str | None, ...] | None = None) -> list[str]:
    return labels([load(path) for path in paths], given or tuple(None for _ in paths))


def report(*paths: Path, allow: tuple[str, ...] = ()) -> Report:
    return Report(open_members([NamedRun(path) for path in paths]), Path(), allow=allow)


def test_the_kernel_names_runs_without_what_all_share(tmp_path: Path) -> None:
    one, other = run(tmp_path / "a"), run(tmp_path / "b", kernel="6.12.0-1-amd64")
    assert named(one, other) == ["6.1.0-9", "6.12.0-1"]


def test_of_one_kernel_two_builds_are_told_apart(tmp_path: Path) -> None:
    def built(number: int) -> dict[str, Any]:
        version = f"#{number} SMP PREEMPT"
        return {
            "build": KernelBuild(version=version, id=None, taint=0, debug=[], debug_from="signs")
        }

    paths = [run(tmp_path / str(n), about=built(n)) for n in (1, 2)]
    assert named(*paths) == ["#1", "#2"]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ([{"about": {"hostname": "left"}}, {"about": {"hostname": "right"}}], ["left", "right"]),
        (
            [
                {"filesystems": {"ext4": {"mount_options": ["noatime"]}}},
                {"filesystems": {"ext4": {"mount_options": ["noatime", "data=journal"]}}},
            ],
            [DEFAULT, "data=journal"],
        ),
        (
            [
                {"filesystems": {"ext4": {"mkfs": ["mkfs.ext4", "-O", "^x", "{device}"]}}},
                {"filesystems": {"ext4": {"mkfs": ["mkfs.ext4", "-O", "y", "{device}"]}}},
            ],
            ["^x", "y"],
        ),
        ([{"filesystems": {"ext4": {}}}, {"filesystems": {"xfs": {}}}], ["ext4", "xfs"]),
        ([{}, {}], ["run0", "run1"]),
        ([{"about": {"guest": {"accelerator": "kvm"}}}, {}], ["kvm", "native"]),
    ],
)
def test_what_differs_names_runs(
    tmp_path: Path, changes: list[dict[str, Any]], names: list[str]
) -> None:
    paths = []
    for number, change in enumerate(changes):
        path = run(tmp_path / f"run{number}", about=change.get("about"))
        content = json.loads((path / "run.json").read_text())
        content |= {k: v for k, v in change.items() if k == "filesystems"}
        (path / "run.json").write_text(json.dumps(content))
        paths.append(path)
    assert named(*paths) == names


def test_two_facts_where_one_does_not_tell_all_apart(tmp_path: Path) -> None:
    paths = [
        run(tmp_path / f"{kernel}{host}", kernel=kernel, about={"hostname": host})
        for kernel in ("6.1", "6.12")
        for host in ("a", "b")
    ]
    assert named(*paths) == ["6.1 a", "6.1 b", "6.12 a", "6.12 b"]


def test_users_labels_stay_and_nobody_else_gets_them(tmp_path: Path) -> None:
    paths = [run(tmp_path / str(n), kernel=f"6.{n}") for n in range(3)]
    assert named(*paths, given=("6.2", None, None)) == ["6.2", "6.1", "6.2 2"]
    assert named(*paths, given=("x", "y", "z")) == ["x", "y", "z"]
    assert named(*paths[:2], given=("x", None))[0] == "x"


def test_long_and_odd_names_are_cut_and_stay_apart(tmp_path: Path) -> None:
    kernels = ["6." + "9" * 60 + end for end in ("a", "b")]
    found = named(*(run(tmp_path / k[-1], kernel=k) for k in kernels))
    assert len(set(found)) == 2
    assert all(len(label) <= MOST + 2 for label in found)
    odd = named(run(tmp_path / "x", kernel="a(b)"), run(tmp_path / "y", kernel="\x1bc"))
    assert odd == ["a[b]", "?c"]


@pytest.mark.parametrize(
    ("text", "path", "label"),
    [
        ("a/b", "a/b", None),
        ("a=b", "a", "b"),
        ("a=b=c", "a=b", "c"),
        ("=b", "=b", None),
    ],
)
def test_a_label_follows_the_last_equals_sign(text: str, path: str, label: str | None) -> None:
    assert NamedRun.parse(text) == NamedRun(Path(path), label)


def test_a_directory_with_an_equals_sign_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / "a=b").mkdir()
    assert NamedRun.parse(f"{tmp_path}/a=b") == NamedRun(tmp_path / "a=b")


@pytest.mark.parametrize("label", ["", " ", "a(b", "\x1b[2J", "x)", "x" * 41])
def test_what_cannot_be_a_label_is_refused(label: str) -> None:
    with pytest.raises(FscaleError, match=r"label .* must be printable text"):
        NamedRun.parse(f"results/a={label}")


def refusal(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["report", *map(str, arguments)])
    assert isinstance(done.exception, FscaleError), (done.output, done.exception)
    assert done.exception.code == Exit.USAGE
    return str(done.exception)


def test_bad_input_is_refused(tmp_path: Path) -> None:
    one, other = run(tmp_path / "one"), run(tmp_path / "other", 0.9, kernel="6.12")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    out = ("--output", tmp_path / "out")
    assert "given twice" in refusal(one, one, *out)
    assert "given twice" in refusal(one, f"{one}/../one=again", *out)
    (tmp_path / "link").symlink_to(one)
    assert "given twice" in refusal(one, tmp_path / "link", *out)
    for bad in ("empty", "file", "nowhere"):
        assert "no run.json" in refusal(one, tmp_path / bad, *out)
    assert "--output DIR" in refusal(one, other)
    assert "another --output" in refusal(one, other, "--output", one)
    assert "the label x" in refusal(f"{one}=x", f"{other}=x", *out)
    assert "second run" in refusal(f"{one}=x")
    assert "second run" in refusal(one, "--allow-different", "suite")
    assert not (tmp_path / "out").exists()
    for path in (other / "cells").iterdir():
        path.unlink()
    assert "run the suite again" in refusal(one, other, *out)


def test_a_copy_is_no_second_run(tmp_path: Path) -> None:
    one = run(tmp_path / "one")
    shutil.copytree(one, tmp_path / "copy")
    with pytest.raises(FscaleError, match=r"same 8 cells.*one is a copy"):
        report(one, tmp_path / "copy")
    # Also where it went on from the copy.
    run(tmp_path / "longer", 1.1, kernel="6.12", cores=(1, 2, 4))
    shared = next((one / "cells").iterdir())
    shutil.copy(shared, tmp_path / "longer" / "cells")
    with pytest.raises(FscaleError, match=r"same 1 cells"):
        report(one, tmp_path / "longer")


def test_more_runs_than_can_be_told_apart(tmp_path: Path) -> None:
    paths = [run(tmp_path / str(n), 1 + n / 10, kernel=f"6.{n}") for n in range(MAX_RUNS + 1)]
    with pytest.raises(FscaleError, match=f"at most {MAX_RUNS}"):
        build_several([NamedRun(path) for path in paths], tmp_path / "all")
    drawn = report(*paths[:-1])
    assert len(set(drawn.lines.values())) == 2 * MAX_RUNS


def test_no_cell_is_merged_with_another_run_s(tmp_path: Path) -> None:
    drawn = report(run(tmp_path / "a"), run(tmp_path / "b", 2.0, kernel="6.12"))
    (page,) = drawn.pages
    (panel,) = page.panels
    assert [c.name for c in panel.curves] == [
        "ext4 (6.1.0-9-amd64)", "ext4 (6.12)", "xfs (6.1.0-9-amd64)", "xfs (6.12)",
    ]  # fmt: skip
    assert all(point.n == 2 for point in panel.points)
    assert len(drawn.figures) == 8
    assert {row["run"] for row in drawn.figures} == {"6.1.0-9-amd64", "6.12"}
    medians = {
        (r["run"], r["filesystem"], r["cores"]): r["median_per_second"] for r in drawn.figures
    }
    assert medians["6.12", "xfs", 2] == pytest.approx(2 * medians["6.1.0-9-amd64", "xfs", 2])


def test_both_sides_of_a_paired_run_are_runs(tmp_path: Path) -> None:
    cells = [cell(key(r, side=s), 1000.0 + r) for r in (1, 2) for s in "AB"]
    paired = write_run(tmp_path / "paired", cells, workloads=("DRBL",))
    drawn = report(run(tmp_path / "a"), paired)
    assert [m.label for m in drawn.members][1:] == [f"{drawn.members[1].run} {s}" for s in "AB"]
    assert sorted(p.n for p in drawn.points) == [2] * 6
    assert len(drawn.parts) == 2


def test_colour_is_the_file_system_and_the_rest_the_run() -> None:
    measured = {(fs, run) for fs in TWO for run in ("a", "b")}
    found = looks({"ext4": "blue", "xfs": None}, ["a", "b"], measured)
    assert found["ext4 (a)"].colour == found["ext4 (b)"].colour != found["xfs (a)"].colour
    assert found["ext4 (a)"].marker == found["xfs (a)"].marker != found["ext4 (b)"].marker
    assert found["ext4 (a)"].dashes == found["xfs (a)"].dashes != found["ext4 (b)"].dashes


def test_of_one_file_system_each_run_has_its_colour() -> None:
    for other in ("ext4", "xfs"):
        measured = {("ext4", "a"), (other, "b")}
        assert by_run(measured)
        found = looks({"ext4": None, "xfs": None}, ["a", "b"], measured)
        assert found["ext4 (a)"].colour != found[f"{other} (b)"].colour
    assert not by_run({("ext4", "a"), ("xfs", "a")})


def test_machines_of_other_sockets_share_no_mark(tmp_path: Path) -> None:
    def layouts(*shapes: tuple[int, int]) -> Any:
        paths = [
            run(
                tmp_path / f"{shapes}{i}", 1 + i / 10, cores=(1, 4), kernel=f"6.{i}",
                about={"topology": cpus_of(*shape), "cpu_order": list(range(4))},
            )
            for i, shape in enumerate(shapes)
        ]  # fmt: skip
        return report(*paths).pages[0].panels[0].layout

    assert layouts((2, 2), (2, 2)).sockets == (2, 4)
    assert layouts((2, 2), (1, 4)) is None


def table(*paths: Path, allow: tuple[str, ...] = ()) -> list[SubjectRow]:
    return rows(report(*paths, allow=allow))


def test_the_table_says_what_compare_says(tmp_path: Path) -> None:
    factors = {"a": 1.0, "b": 0.8, "c": 1.0}
    paths = [
        run(tmp_path / name, factor, kernel=f"6.{i}", repetitions=12)
        for i, (name, factor) in enumerate(factors.items())
    ]
    # The same figures would be a copy.
    _shift(paths[2], 1.0001)
    found = table(*paths)
    assert len(found) == 4
    for column, path in enumerate(paths[1:], 1):
        judged = {
            j.subject: j
            for j in compare(open_sides(paths[0], path), Settings()).judgements
            if j.metric == THROUGHPUT
        }
        for row in found:
            value = row.values[column]
            assert value.verdict == judged[row.subject].verdict
            assert value.ratio == judged[row.subject].ratio
    assert {row.values[1].verdict for row in found} == {"slower"}
    assert {row.values[1].change for row in found} == {"-20.0%"}
    assert {row.values[2].verdict for row in found} == {"same"}


def _shift(path: Path, factor: float) -> None:
    for file in (path / "cells").iterdir():
        content = json.loads(file.read_text())
        file.write_text(
            json.dumps(content | {"ops_per_second": factor * content["ops_per_second"]})
        )


def test_one_repetition_has_a_change_and_no_verdict(tmp_path: Path) -> None:
    paths = [run(tmp_path / k, f, kernel=k, repetitions=1) for k, f in (("6.1", 1), ("6.12", 0.5))]
    for row in table(*paths):
        assert row.values[1].change == "-50.0%"
        assert row.values[1].verdict is None
    words = text_of(build_several([NamedRun(p) for p in paths], tmp_path / "out"))
    assert "Not judged: 6.12. " in words
    assert "Every point was measured once" in words


def test_what_means_another_thing_is_drawn_and_not_compared(tmp_path: Path) -> None:
    one = run(tmp_path / "one", suite={"name": "x", "warmup": 1}, repetitions=12)
    other = run(tmp_path / "other", 0.8, suite={"name": "x", "warmup": 2}, repetitions=12)
    drawn = report(one, other)
    assert {v.ratio for row in rows(drawn) for v in row.values} == {None}
    assert len(drawn.pages[0].panels[0].curves) == 4
    words = text_of(build_several([NamedRun(one), NamedRun(other)], tmp_path / "out"))
    assert "Runs that cannot be compared" in words
    assert "suite.warmup: 1 and 2" in words
    assert "--allow-different suite.warmup" in words
    assert {row.values[1].verdict for row in table(one, other, allow=("suite.warmup",))} == {
        "slower"
    }


def test_measured_and_simulated_never_mix(tmp_path: Path) -> None:
    guest = {"guest": {"accelerator": "simulated"}}
    drawn = report(run(tmp_path / "a"), run(tmp_path / "b", 2.0, about=guest))
    (against,) = drawn.against.values()
    assert against.refused is not None
    assert "such figures cannot be compared" in against.refused


def test_a_point_that_fails_is_broken(tmp_path: Path) -> None:
    one, other = run(tmp_path / "a"), run(tmp_path / "b", kernel="6.12", repetitions=2)
    for file in (other / "cells").glob("DRBL-xfs-*-2c-*"):
        content = json.loads(file.read_text())
        file.write_text(json.dumps(content | {"status": "error", "reason": "mount failed"}))
    _shift(other, 1.001)
    (row,) = [
        r for r in table(one, other) if r.subject.filesystem == "xfs" and r.subject.cores == (2,)
    ]
    assert row.values[1].point is None
    assert row.values[1].health == "broken"
    words = text_of(build_several([NamedRun(one), NamedRun(other)], tmp_path / "out"))
    assert "broken" in words
    assert "mount failed" in words


def test_runs_of_a_file_system_each_are_one_row(tmp_path: Path) -> None:
    one = run(tmp_path / "a", filesystems=("ext4",), repetitions=12)
    other = run(tmp_path / "b", 0.8, filesystems=("xfs",), repetitions=12)
    found = table(one, other)
    assert [row.subject.cores for row in found] == [(1,), (2,)]
    assert {row.values[1].verdict for row in found} == {"slower"}


def test_the_page_has_each_run_s_own_sections(tmp_path: Path) -> None:
    paths = [run(tmp_path / k, f, kernel=k) for k, f in (("6.1", 1.0), ("6.12", 1.5))]
    for path, host in zip(paths, ("left", "right"), strict=True):
        content = json.loads((path / "run.json").read_text())
        content["machine"]["hostname"] = host
        (path / "run.json").write_text(json.dumps(content))
    named = [NamedRun(paths[0], "old"), NamedRun(paths[1], "new")]
    html = build_several(named, tmp_path / "out", plots=PlotSettings())
    page = html.read_text()
    for heading in ("<h3>old</h3>", "<h3>new</h3>"):
        assert page.count(heading) == 3  # cells, machine, how to reproduce
    assert "machine.hostname: left and right" in text_of(html)
    ids = re.findall(r'\bid="([^"]+)"', re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    assert len(ids) == len(set(ids))
    with (tmp_path / "out" / "figures.csv").open() as file:
        assert {row["run"] for row in csv.DictReader(file)} == {"old", "new"}
    assert sorted(p.name for p in (tmp_path / "out" / "plots").glob("*.pdf"))


def test_the_charts_know_run_and_file_system(tmp_path: Path) -> None:
    paths = [
        run(tmp_path / k, f, kernel=k, repetitions=12) for k, f in (("6.1", 1.0), ("6.12", 0.8))
    ]
    (panel,) = interactive.data(report(*paths))["panels"]
    assert [(c["filesystem"], c["run"]) for c in panel["curves"]] == [
        ("ext4", "6.1"), ("ext4", "6.12"), ("xfs", "6.1"), ("xfs", "6.12"),
    ]  # fmt: skip
    old, new, *_ = panel["curves"]
    assert "change" not in old["points"][0]
    assert re.fullmatch(
        r"-20\.0% \[-2\d\.\d%, -1\d\.\d%\] against 6\.1: slower", new["points"][0]["change"]
    )
    assert new["points"][0]["point"].startswith("6.12|DRBL-ext4-")


def test_one_run_is_as_it_was(tmp_path: Path) -> None:
    path = run(tmp_path / "run")
    html = build(path)
    assert "Side by side" not in text_of(html)
    (panel,) = _data(html)["panels"]
    assert [(c["name"], c["filesystem"], c["run"]) for c in panel["curves"]] == [
        ("ext4", "ext4", None), ("xfs", "xfs", None),
    ]  # fmt: skip
    (name,) = {row["run"] for row in json.loads((path / "figures.json").read_text())["figures"]}
    assert name == load(path).run.id


def _data(html: Path) -> dict[str, Any]:
    found = re.search(r'id="chart-data">(.*?)</script>', html.read_text(), re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_command_writes_one_report(tmp_path: Path) -> None:
    one, other = run(tmp_path / "a"), run(tmp_path / "b", 1.5, kernel="6.12")
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["report", f"{one}=old", str(other), "--output", str(out)])
    assert done.exit_code == 0, done.output
    assert done.output.strip() == str(out / "report.html")
    assert "old" in text_of(out / "report.html")
    assert "DIR=LABEL" in CliRunner().invoke(app, ["report", "--help"]).output
    assert not (one / "report.html").exists()
    assert list((out / "plots").glob("*.pdf"))


def test_a_report_without_plots_is_the_same_page(tmp_path: Path) -> None:
    one = run(tmp_path / "a")
    for plots, flags in (("with", []), ("without", ["--no-plots"])):
        asked = ["report", str(one), "--output", str(tmp_path / plots), *flags]
        assert CliRunner().invoke(app, asked).exit_code == 0
    assert sorted(p.name for p in (tmp_path / "without").iterdir()) == [
        "figures.csv", "figures.json", "report.html",
    ]  # fmt: skip
    pages = [(tmp_path / name / "report.html").read_bytes() for name in ("with", "without")]
    assert pages[0] == pages[1]
