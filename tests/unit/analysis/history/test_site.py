# SPDX-License-Identifier: GPL-2.0-only
"""The site of a history: what its pages say, and that they are whole whatever the runs are."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.model.errors import Exit, FscaleError
from tests.support.histories import LOST, STEP, steady, stepping, write_history
from tests.support.hostile import Page, rename
from tests.support.pages import Table
from tests.support.synthetic import cell, grid, machine, write_run

pytestmark = pytest.mark.slow

SCRIPTS = ["page.js", "overview.js", "vega.js", "series.js"]
COUNT = 20


def fscale(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == Exit.GOOD, done.output
    return done.output


def site(tmp_path: Path, *more: object) -> Path:
    """The site of all runs below tmp_path/runs."""
    out = tmp_path / "site"
    fscale("history", "report", tmp_path / "runs", "--output", out, *more)
    return out


def series_pages(out: Path) -> Iterator[Path]:
    yield from sorted((out / "series").glob("*.html"))


def page_of(out: Path, workload: str, filesystem: str) -> Path:
    (page,) = (out / "series").glob(f"{workload}-{filesystem}-*.html")
    return page


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    write_history(root / "runs", COUNT, stepping)
    return site(root)


def test_the_overview_has_the_step_with_its_runs_and_kernels(whole: Path) -> None:
    rows = Table(whole / "index.html", "Table of changes").rows
    assert len(rows) == 2  # of both workloads
    for date, change, _, filesystem, cores, _, _, runs, kernel in rows:
        assert date == "2026-03-13"
        assert float(change.strip("%")) == pytest.approx(100 * (LOST - 1), abs=1.5)
        assert (filesystem, cores) == ("ext4", "2")
        assert runs == f"host-{STEP - 1:03} → host-{STEP:03}"
        assert kernel == "6.12.0 → 6.13.0"
    assert {row[2] for row in rows} == {"MWCL", "DRBL"}


def test_every_series_has_a_row_a_sparkline_and_a_page(whole: Path) -> None:
    text = (whole / "index.html").read_text()
    rows = Table(whole / "index.html", "Table of host (2 x made-up CPU)").rows
    assert len(rows) == text.count('class="spark"') == 8
    assert {row[7] for row in rows} == {str(COUNT)}
    links = re.findall(r'href="(series/[^"#]+)#(cores-\d)"', text)
    assert len(links) == 10  # the two changes too
    for file, anchor in links:
        assert f'id="{anchor}"' in (whole / file).read_text()


def test_a_page_has_every_value_and_a_still_drawing(whole: Path) -> None:
    page = page_of(whole, "MWCL", "ext4")
    rows = Table(page, "Table of values").rows
    assert [row[0] for row in rows] == [f"host-{n:03}" for n in reversed(range(COUNT))]
    assert rows[0][2] == "6.13.0"
    assert [row[0] for row in rows if "%" in row[4]] == [f"host-{STEP:03}"]
    text = page.read_text()
    assert text.count("<svg viewBox=") == 2
    steps = Table(page, "Table of steps").rows
    assert len(steps) == 1
    assert steps[0][0] == "2"


def test_the_library_is_there_once(whole: Path) -> None:
    large = [p for p in whole.rglob("*") if p.is_file() and p.stat().st_size > 500_000]
    assert [p.name for p in large] == ["vega.js"]
    assert sum(p.stat().st_size for p in whole.rglob("*") if p.is_file()) < 2_000_000


def test_pages_load_what_lies_beside_them_and_nothing_else(whole: Path) -> None:
    for page in [whole / "index.html", *series_pages(whole)]:
        text = page.read_text()
        for address in re.findall(r'(?:href|src)="([^"]*)"', text):
            if not address.startswith(("#", "data:,")):
                assert (page.parent / address.partition("#")[0]).is_file(), address


def test_the_same_runs_give_the_same_files(whole: Path, tmp_path: Path) -> None:
    write_history(tmp_path / "runs", COUNT, stepping)
    again = site(tmp_path)
    for page in [whole / "index.html", *series_pages(whole)]:
        assert (again / page.relative_to(whole)).read_bytes() == page.read_bytes()


def test_an_index_gives_the_same_as_its_directories(whole: Path, tmp_path: Path) -> None:
    db = tmp_path / "h.sqlite"
    fscale("history", "add", *write_history(tmp_path / "runs", COUNT, stepping), "--db", db)
    said = fscale("history", "report", "--output", tmp_path / "site", "--db", db)
    assert said.strip() == str(tmp_path / "site" / "index.html")
    assert (tmp_path / "site" / "index.html").read_text() == (whole / "index.html").read_text()


def test_noise_alone_moves_nothing(tmp_path: Path) -> None:
    write_history(tmp_path / "runs", COUNT, steady)
    out = site(tmp_path)
    assert Table(out / "index.html", "Table of changes").rows == []
    assert "No level changed by more than 5%" in (out / "index.html").read_text()
    for page in series_pages(out):
        assert "<p>None.</p>" in page.read_text()


def test_one_run_is_shown_and_not_judged(tmp_path: Path) -> None:
    write_history(tmp_path / "runs", 1)
    out = site(tmp_path)
    assert "at least 6 runs." in (out / "index.html").read_text()
    page = page_of(out, "MWCL", "xfs")
    assert "at least 6 runs." in page.read_text()
    assert len(Table(page, "Table of values").rows) == 1


def test_series_begin_and_end(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    write_history(root, 8, filesystems=("ext4", "xfs"))
    write_history(root, 8, first=8, filesystems=("ext4", "btrfs"))
    out = site(tmp_path)
    rows = Table(out / "index.html", "Table of host (2 x made-up CPU)").rows
    last = {(row[0], row[1], row[2]): row[8] for row in rows}
    assert last["MWCL", "xfs", "1"] == "2026-03-08 (not in 8 newer runs)"
    assert last["MWCL", "btrfs", "1"] == "2026-03-16"
    assert "8 newer runs" in page_of(out, "MWCL", "xfs").read_text()
    assert "newer run" not in page_of(out, "MWCL", "btrfs").read_text()


def test_a_core_count_that_was_left_out_is_a_gap(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    write_history(root, 4, cores=(1, 2))
    write_history(root, 4, first=4, cores=(1,))
    rows = Table(page_of(site(tmp_path), "MWCL", "ext4"), "Table of values").rows
    assert [row[4] == "·" for row in rows] == [True] * 4 + [False] * 4


def test_machines_and_definitions_never_mix(tmp_path: Path) -> None:
    """What is faster is another machine; then another warm-up: no step anywhere."""
    root = tmp_path / "runs"
    write_history(root, 8, workloads=["MWCL"], filesystems=["ext4"])
    fast = {"rate": lambda key, number: 3 * steady(key, number)}
    write_history(root, 8, workloads=["MWCL"], filesystems=["ext4"], first=8, host="b", **fast)
    suite = {"suite": {"name": "synthetic", "warmup": 5}}
    write_history(root, 8, workloads=["MWCL"], filesystems=["ext4"], first=16, **fast, **suite)
    out = site(tmp_path)
    assert len(list(series_pages(out))) == 3
    assert Table(out / "index.html", "Table of changes").rows == []
    text = (out / "index.html").read_text()
    assert "<h3>host (2 x made-up CPU)</h3>" in text
    assert "<h3>b (2 x made-up CPU)</h3>" in text
    for page in series_pages(out):
        assert len(Table(page, "Table of values").rows) == 8


def test_series_that_look_alike_are_told_apart(tmp_path: Path) -> None:
    """Two mount options and two machines, each with its step."""
    root = tmp_path / "runs"
    for day, (host, options) in enumerate((("a", []), ("a", ["data=journal"]), ("b", []))):
        described = {"ext4": {"title": "ext4", "kernel": "ext4", "mount_options": options}}
        for number in range(COUNT):
            cells = grid([2], 3, ["MWCL"], ["ext4"], rate=lambda k, n=number: stepping(k, n))  # type: ignore[misc]
            name = f"{day}-{number:02}"
            there = machine(2).model_copy(update={"hostname": host})
            started = f"2026-0{day + 3}-{number + 1:02}T00:00:00Z"
            run = write_run(root / name, cells, id=name, started=started, machine=there)
            recorded = json.loads((run / "run.json").read_text()) | {"filesystems": described}
            (run / "run.json").write_text(json.dumps(recorded))
    out = site(tmp_path)
    (plain, journal) = Table(out / "index.html", "Table of a (2 x made-up CPU)").rows
    assert plain[3] == "ram buffered 1s, mount_options=none"
    assert journal[3] == "ram buffered 1s, mount_options=data=journal"
    (other,) = Table(out / "index.html", "Table of b (2 x made-up CPU)").rows
    assert other[3] == "ram buffered 1s"
    moved = Table(out / "index.html", "Table of changes").rows
    assert [row[3] for row in moved] == [
        "ext4 b (2 x made-up CPU)",
        "ext4 mount_options=data=journal, a (2 x made-up CPU)",
        "ext4 mount_options=none, a (2 x made-up CPU)",
    ]
    heads = {re.findall(r'<p class="run">(.*?)</p>', p.read_text())[0] for p in series_pages(out)}
    assert heads == {
        "ram buffered 1s, mount_options=none, a (2 x made-up CPU)",
        "ram buffered 1s, mount_options=data=journal, a (2 x made-up CPU)",
        "ram buffered 1s, b (2 x made-up CPU)",
    }


def test_two_builds_of_a_kernel_are_told_apart(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    for number, path in enumerate(write_history(root, COUNT, stepping, workloads=["MWCL"])):
        build = {"version": f"#{1 + (number >= STEP)} SMP", "id": None, "taint": 0, "debug": []}
        there = machine(2).model_dump() | {
            "kernel": "6.12.0", "hostname": "host", "build": build | {"debug_from": "signs"},
        }  # fmt: skip
        cells = grid([1, 2], 3, ["MWCL"], ["ext4"], rate=lambda k, n=number: stepping(k, n))  # type: ignore[misc]
        started = f"2026-03-{number + 1:02}T00:00:00Z"
        write_run(path, cells, id=path.name, started=started, machine=there)
    (row,) = Table(site(tmp_path) / "index.html", "Table of changes").rows
    assert row[8] == "6.12.0 different builds: #1 SMP → #2 SMP"


def test_a_corrupt_run_is_left_out_and_named(tmp_path: Path) -> None:
    runs = write_history(tmp_path / "runs", 7)
    (runs[3] / "run.json").write_text("{")
    done = CliRunner().invoke(
        app, ["history", "report", str(tmp_path / "runs"), "--output", str(tmp_path / "site")]
    )
    assert done.exit_code == Exit.GOOD
    assert "left out: " in done.output
    text = (tmp_path / "site" / "index.html").read_text()
    assert "Left out" in text
    assert "host-003" in text
    assert len(Table(tmp_path / "site" / "index.html", "Table of runs").rows) == 6


def test_where_every_run_is_corrupt_the_reasons_are_told(tmp_path: Path) -> None:
    for run in write_history(tmp_path / "runs", 2):
        (run / "run.json").write_text("{")
    done = CliRunner().invoke(
        app, ["history", "report", str(tmp_path / "runs"), "--output", str(tmp_path / "site")]
    )
    assert isinstance(done.exception, FscaleError)
    assert done.output.count("left out: ") == 2
    assert not (tmp_path / "site").exists()


def test_no_history_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FscaleError, match="fscale history add DIR"):
        fscale("history", "report", "--output", tmp_path / "s", "--db", tmp_path / "h.sqlite")
    (tmp_path / "runs").mkdir()
    with pytest.raises(FscaleError, match="no run to show"):
        site(tmp_path)
    assert not (tmp_path / "s").exists()
    with pytest.raises(FscaleError, match=r"none is not a directory"):
        fscale("history", "report", tmp_path / "none", "--output", tmp_path / "s")
    with pytest.raises(FscaleError, match="--metric speed"):
        site(tmp_path, "--metric", "speed")


def test_runs_of_sides_have_no_history(tmp_path: Path) -> None:
    cells = [
        cell(made.key.model_copy(update={"side": "A"}), 1000)
        for made in grid([1], 1, ["MWCL"], ["ext4"])
    ]
    write_run(tmp_path / "runs" / "ab", cells)
    with pytest.raises(FscaleError, match="`fscale ab`, whose sides have no history"):
        site(tmp_path)


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    write_history(tmp_path / "runs", 1)
    (tmp_path / "site").write_text("a file")
    with pytest.raises(FscaleError, match="not a directory"):
        site(tmp_path)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    write_history(tmp_path / "runs", 1)
    (tmp_path / "precious").mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "series").symlink_to(tmp_path / "precious")
    with pytest.raises(FscaleError, match="it is a link"):
        site(tmp_path)
    assert list((tmp_path / "precious").iterdir()) == []


def test_a_figure_that_is_none_is_left_out(tmp_path: Path) -> None:
    """A stranger's cell may claim a rate and no operations: nothing per second of CPU time."""
    for number, run in enumerate(write_history(tmp_path / "runs", 8, cores=(1,))):
        cells = grid([1], 2, ["MWCL"], ["ext4"], rate=lambda k, n=number: steady(k, n))  # type: ignore[misc]
        lost = [c.model_copy(update={"ops": 0}) if number == 3 else c for c in cells]
        shutil.rmtree(run / "cells")
        started = f"2026-03-{number + 1:02}T00:00:00Z"
        write_run(run, lost, id=run.name, started=started)
    (page,) = series_pages(site(tmp_path, "--metric", "per-cpu-second"))
    assert [row[0] for row in Table(page, "Table of values").rows] == [
        f"host-{n:03}" for n in (7, 6, 5, 4, 2, 1, 0)
    ]


EVIL = '</script><script>alert(1)</script>"><img src=x onerror=alert(2)>'


def hostile(root: Path) -> Path:
    """A site of runs whose every name tries to be markup."""
    there = {"kernel": EVIL, "cpu_model": EVIL}
    for number, run in enumerate(write_history(root / "runs", 8, cores=(1,), workloads=["DRBL"])):
        text = machine(2).model_copy(update=there)
        cells = grid([1], 2, ["DRBL"], ["ext4"], rate=lambda k, n=number: steady(k, n))  # type: ignore[misc]
        started = f"2026-03-{number + 1:02}T00:00:00Z"
        write_run(run, cells, id=EVIL, started=started, machine=text, revision=EVIL)
        for file in sorted((run / "cells").iterdir()):
            names = {"workload": "..<b>x", "filesystem": '"><i>y', "options": {"o": EVIL}}
            rename(run, file, **names)
        (run / "tags.json").write_text('["<b onclick=1>tag"]')
    return site(root)


def test_a_stranger_s_names_stay_names(tmp_path: Path) -> None:
    out = hostile(tmp_path)
    pages = [out / "index.html", *series_pages(out)]
    assert len(pages) > 1
    for page in pages:
        up = "" if page.parent == out else "../"
        files = {f"{up}{name}" for name in (*SCRIPTS, "style.css", "index.html")}
        links = re.findall(r'href="(series/[\w.-]+\.html#cores-\d+)"', page.read_text())
        parsed = Page(page.read_text(), own={*files, *links})
        assert parsed.acting == []
        assert not any(parsed.scripts)  # what runs is in files of ours
        (policy,) = parsed.policies
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src-elem 'self';")
        assert "unsafe" not in policy.replace("style-src-attr 'unsafe-inline'", "")
        assert EVIL not in page.read_text()
    written = list(tmp_path.rglob("*.html"))
    assert sorted(written) == sorted(pages)
