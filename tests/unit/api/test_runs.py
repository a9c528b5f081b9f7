# SPDX-License-Identifier: GPL-2.0-only
"""Runs as DataFrames, curves and a page: what `fscale.load` gives."""

import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import same_color

import fscale
from fscale.analysis.formats.tables import TABLES
from fscale.analysis.members import MAX_RUNS
from fscale.analysis.style import SERIES
from fscale.model import paths
from tests.support.hostile import good
from tests.support.synthetic import cell, grid, key, write_run
from tests.unit.analysis.compare.test_kept import unpacked

LATENCY = {"quantiles": {"50": 2000, "99": 5000, "100": 9000}}


@pytest.fixture(autouse=True)
def _no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")


def run(directory: Path, factor: float = 1.0, **changes: object) -> Path:
    """Two file systems on one to four cores, with controls, a failure and a profile."""
    scored = grid((1, 2, 4), 3, ("MWCM",), ("tmpfs", "ext4"))
    made = [c.model_copy(update={"ops_per_second": factor * c.ops_per_second}) for c in scored]
    made[0] = made[0].model_copy(update={"latency": LATENCY, "disturbed": "others took 0.4 CPUs"})
    control = {"workload": "control_user", "filesystem": "none", "medium": "none"}
    made += [cell(key(n, cores=c, **control), 1e6 * c) for n in (1, 2) for c in (1, 2, 4)]
    failed = key(9, workload="MWCM", filesystem="ext4")
    made.append(cell(failed, factor, status="error", reason="no space"))
    made.append(cell(key(1, workload="MWCM", filesystem="ext4", profile="locks"), 5 * factor))
    return write_run(directory, made, workloads=("MWCM",), cpus=4, **changes)


@pytest.fixture
def loaded(tmp_path: Path) -> fscale.Runs:
    return fscale.load(run(tmp_path / "today"))


def test_importing_the_package_imports_no_library() -> None:
    libraries = {"pandas", "numpy", "matplotlib", "pydantic", "fscale.api"}
    argv = [sys.executable, "-c", f"import sys, fscale; print({libraries} & {{*sys.modules}})"]
    said = subprocess.run(argv, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"


def test_names_are_found_and_no_others() -> None:
    assert {"load", "compare", "Runs", "FscaleError", "__version__"} <= {*dir(fscale)}
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        fscale.lod  # type: ignore[attr-defined]  # noqa: B018


def test_all_tables_have_units_and_meanings(loaded: fscale.Runs) -> None:
    for name, table in TABLES.items():
        frame: pd.DataFrame = getattr(loaded, name)
        assert list(frame) == [column.name for column in table.columns]
        assert frame.attrs["meanings"].keys() == set(frame)
        assert set(frame.attrs["units"].values()) <= {"s", "1/s", "Hz", "B", "%", "W"}
        for column in frame:
            # A figure's name has the same unit as its entry.
            if str(column).endswith("_seconds"):
                assert frame.attrs["units"][column] == "s", column
            if str(column).endswith("_per_second"):
                assert frame.attrs["units"][column] == "1/s", column


def test_profiled_and_failed_repetitions_are_set_apart(loaded: fscale.Runs) -> None:
    assert len(loaded.cells) == 19
    assert loaded.cells.profile.isna().all()
    assert loaded.cells[~loaded.cells.counts].reason.tolist() == ["no space"]
    assert loaded.cells[loaded.cells.status != "ok"].ops_per_second.isna().all()
    assert loaded.cells.disturbed.dropna().tolist() == ["others took 0.4 CPUs"]
    (profiled,) = loaded.profiled.to_dict("records")
    assert (profiled["profile"], profiled["counts"]) == ("locks", False)


def test_points_are_medians_of_what_counts(loaded: fscale.Runs) -> None:
    good = loaded.cells[loaded.cells.counts]
    medians = good.groupby("point").ops_per_second.median()
    assert loaded.points.set_index("point").median_per_second.to_dict() == medians.to_dict()
    assert loaded.points.repetitions.tolist() == [3] * 6
    top = loaded.points[loaded.points.cores == 4]
    assert top.linear.tolist() == [4.0, 4.0]
    assert (top.speedup_low <= top.speedup).all() and (top.speedup <= top.speedup_high).all()


def test_latencies_have_a_row_for_each_percentile(loaded: fscale.Runs) -> None:
    found = loaded.latency.set_index("percentile").latency_seconds.to_dict()
    assert found == {50.0: 2e-6, 99.0: 5e-6, 100.0: 9e-6}
    assert loaded.latency.disturbed.notna().all()


def test_controls_say_what_is_linear(loaded: fscale.Runs) -> None:
    four = loaded.control[loaded.control.cores == 4].iloc[0]
    assert (four.workload, four.repetitions, four.speedup, four.linear) == ("control_user", 2, 4, 4)
    assert loaded.control.basis.iloc[0] == "the base"


def test_locks_are_those_of_the_profiles(tmp_path: Path) -> None:
    locks = fscale.load(good(tmp_path / "run")).locks
    for _, shares in locks.groupby("cores").share:
        assert shares.is_monotonic_decreasing
    first = locks[(locks.cores == 2) & (locks.sort == "lock")].iloc[0]
    assert first.share == pytest.approx(first.blocked + first.spinning)
    assert 0 < first.share <= 1
    assert first.object and first.named_by
    assert first.mean_seconds < first.longest_seconds < 10
    assert fscale.load(run(tmp_path / "none")).locks.empty


def test_machines_have_a_row_for_each_run(loaded: fscale.Runs) -> None:
    (machine,) = loaded.machine.to_dict("records")
    assert (machine["cpus"], machine["host"]) == (4, "synthetic-test-host")
    assert machine["memory_bytes"] == 16 << 30
    assert pd.isna(machine["governor"])


def test_several_runs_have_names_in_every_table(tmp_path: Path) -> None:
    both = [run(tmp_path / "a"), run(tmp_path / "b", 0.5)]
    loaded = fscale.load(*both, labels=["before", "after"])
    for name in ("cells", "profiled", "points", "latency", "control", "machine"):
        assert set(getattr(loaded, name).run) == {"before", "after"}, name
    medians = loaded.points.groupby("run").median_per_second.sum()
    assert medians["after"] == pytest.approx(medians["before"] / 2)
    assert set(fscale.load(*both).cells.run) == {"a", "b"}
    assert set(fscale.load(both[0], labels=["alone"]).points.run) == {"alone"}


def test_what_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    with pytest.raises(fscale.FscaleError, match=r"no run\.json"):
        fscale.load(tmp_path)
    with pytest.raises(fscale.FscaleError, match="no run to read"):
        fscale.load()
    with pytest.raises(fscale.FscaleError, match="2 labels for 1 run; give each one"):
        fscale.load(run(tmp_path / "a"), labels=["a", "b"])
    with pytest.raises(fscale.FscaleError, match="label a"):
        fscale.load(run(tmp_path / "a"), labels=["a(b)"])


def test_a_curve_has_the_report_s_colours(loaded: fscale.Runs) -> None:
    ax = loaded.curve("MWCM")
    assert ax.get_title() == "MWCM"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("cores", "k ops/s")
    legend = ax.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["tmpfs", "ext4", "linear", "linear on this machine"]
    curves = {line.get_gid(): line for line in ax.get_lines()}
    assert same_color(curves["curve-0"].get_color(), SERIES["black"].light)
    assert same_color(curves["curve-1"].get_color(), SERIES["blue"].light)
    assert list(curves["curve-1"].get_xdata()) == [1, 2, 4]  # type: ignore[arg-type]
    plt.close("all")


def test_a_curve_is_drawn_on_given_axes_alone(loaded: fscale.Runs) -> None:
    figure, (left, right) = plt.subplots(1, 2)
    before = dict(mpl.rcParams)
    assert loaded.curve("MWCM", ax=left, linear=False) is left
    assert left.get_lines() and not right.get_lines()
    assert plt.get_fignums() == [figure.number]
    assert dict(mpl.rcParams) == before
    legend = left.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["tmpfs", "ext4"]
    plt.close("all")


def test_what_a_curve_is_of_must_be_clear(tmp_path: Path) -> None:
    sizes = [cell(key(1, cores=c, options={"size": s}), 5.0) for c in (1, 2) for s in (4, 8)]
    media = grid((1, 2), 1, ("MWCM",), ("ext4",), media=("ram", "ssd"))
    runs = fscale.load(write_run(tmp_path / "run", [*sizes, *media], workloads=("DRBL", "MWCM")))
    with pytest.raises(fscale.FscaleError, match="did you mean MWCM"):
        runs.curve("MWCN")
    with pytest.raises(fscale.FscaleError, match="ram medium, buffered I/O; MWCM, ssd medium"):
        runs.curve("MWCM")
    with pytest.raises(fscale.FscaleError, match=r"medium=nvme.* there are: ram medium"):
        runs.curve("MWCM", medium="nvme")
    assert runs.curve("MWCM", medium="ssd").get_title() == "MWCM"
    with pytest.raises(fscale.FscaleError, match=r"DRBL size=4.*; DRBL size=8"):
        runs.curve("DRBL")
    assert runs.curve("DRBL size=8").get_title() == "DRBL size=8"
    plt.close("all")


def test_more_runs_than_can_be_told_apart_have_tables_but_no_curve(tmp_path: Path) -> None:
    made = [
        write_run(tmp_path / str(n), [cell(key(1), 1.0 + n)], workloads=["DRBL"])
        for n in range(MAX_RUNS + 1)
    ]
    runs = fscale.load(*made)
    assert len(runs.points) == MAX_RUNS + 1
    with pytest.raises(fscale.FscaleError, match="too many to tell apart"):
        runs.curve("DRBL")


def test_jupyter_shows_the_report_s_answer(loaded: fscale.Runs, tmp_path: Path) -> None:
    html = loaded._repr_html_()
    assert html is not None
    assert "Of 2 curves up to 4 cores" in html
    assert 'class="answer"' in html
    assert "synthetic-test-host" in html
    assert "<script" not in html
    assert ":root {\n  --" not in html  # else its variables would be those of the page around it
    both = fscale.load(run(tmp_path / "a"), run(tmp_path / "b", 0.5), labels=["old", "new"])
    html = both._repr_html_()
    assert html is not None
    assert "ext4 (new)" in html
    assert repr(loaded).startswith("<fscale.Runs of synthetic: Of 2 curves")


def test_jupyter_shows_the_verdicts_of_a_paired_run(tmp_path: Path) -> None:
    html = fscale.load(unpacked("ab-whole", tmp_path))._repr_html_()
    assert html is not None
    assert "found a regression" in html
    assert 'class="answer"' not in html


def test_jupyter_shows_the_names_of_runs_that_have_no_answer(tmp_path: Path) -> None:
    one, two = (
        write_run(tmp_path / name, [cell(key(1), rate)], workloads=["DRBL"])
        for name, rate in (("a", 1.0), ("b", 2.0))
    )
    assert fscale.load(one, two)._repr_html_() is None
    assert "a, b" in repr(fscale.load(one, two))
