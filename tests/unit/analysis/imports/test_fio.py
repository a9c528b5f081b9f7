# SPDX-License-Identifier: GPL-2.0-only
"""fio's JSON: real files of fio 3.25, 3.33 and 3.39, and one in the form of fio 2."""

import json
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.imports.run import Imported
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from tests.support.imports import FILES, read


def imported(*names: str) -> Imported:
    return read("fio", [FILES / f"fio-{name}" for name in names])


def jobs(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FILES / f"fio-{name}").read_text())["jobs"]
    return found


def points(run: Imported) -> dict[tuple[str, int], Cell]:
    return {(cell.key.workload, cell.key.cores): cell for cell in run.cells}


def test_files_of_several_numjobs_are_a_curve() -> None:
    run = imported("loop1.json", "loop2.json")
    cells = points(run)
    assert list(cells) == [("job1", 1), ("job1", 2)]
    for cores, cell in ((n, cells["job1", n]) for n in (1, 2)):
        (job,) = jobs(f"loop{cores}.json")
        assert cell.status == "ok"
        assert cell.ops_per_second == job["write"]["iops"]
        assert cell.ops == job["write"]["total_ios"]
        assert cell.seconds == job["write"]["runtime"] / 1000
        percent = job["usr_cpu"] + job["sys_cpu"]
        assert cell.own_cpu_seconds == pytest.approx(percent / 100 * job["job_runtime"] / 1000)
        assert cell.extra["mb_per_second"] == pytest.approx(job["write"]["bw_bytes"] / 1e6, 1e-3)
        assert cell.latency is not None
        assert cell.latency["quantiles"]["99"] == job["write"]["clat_ns"]["percentile"]["99.000000"]
        assert cell.latency["quantiles"]["100"] == job["write"]["clat_ns"]["max"]
    assert run.run.loads == {"job1": ["bs=4k", "rw=randwrite", "size=4M"]}
    assert run.run.started.startswith("2026-11-29T")
    assert run.run.versions == {"fio": "fio-3.33"}


def test_flags_that_new_versions_print_are_no_load() -> None:
    """fio 3.39 has `group_reporting` and `time_based` among the options, fio 3.33 has not."""
    run = imported("3.39-1.json", "3.39-2.json")
    assert list(points(run)) == [("seq", 1), ("seq", 2)]
    assert run.run.loads == {"seq": ["bs=64k", "rw=read", "size=2M"]}


def test_names_that_end_with_their_numjobs_are_a_curve() -> None:
    assert list(points(imported("stages.json"))) == [("read", 1), ("read", 2)]


def test_processes_of_a_job_are_summed() -> None:
    two = points(imported("stages.json"))["read", 2]
    each = [job["read"] for job in jobs("stages.json") if job["jobname"] == "read-2"]
    assert len(each) == 2
    assert two.ops == sum(one["total_ios"] for one in each)
    assert two.ops_per_second == sum(one["iops"] for one in each)


def test_bins_of_processes_are_one_histogram() -> None:
    two = points(imported("stages.json"))["read", 2]
    assert two.latency is not None
    assert two.latency["count"] == two.ops
    most = max(int(b) for j in jobs("stages.json")[1:] for b in j["read"]["clat_ns"]["bins"])
    assert two.latency["quantiles"]["100"] == pytest.approx(most, 1e-3)


def test_percentiles_that_cannot_be_joined_are_left_out() -> None:
    run = imported("3.25.json")
    (cell,) = run.cells
    assert (cell.key.cores, cell.latency) == (2, None)
    assert any("percentiles" in reason for reason in run.left_out)
    each = [job[way] for job in jobs("3.25.json") for way in ("read", "write")]
    assert cell.ops == sum(one["total_ios"] for one in each)


@pytest.mark.parametrize(("name", "reports"), [("status.json", 2), ("3.25-status.json", 2)])
def test_the_last_report_of_a_run_counts(name: str, reports: int) -> None:
    run = imported(name)
    assert any(f"before the last one ({reports} times)" in reason for reason in run.left_out)
    last = json.loads("{" + (FILES / f"fio-{name}").read_text().split("\n{")[-1])["jobs"]
    done = sum(job[way]["total_ios"] for job in last for way in ("read", "write"))
    assert sum(cell.ops for cell in run.cells) == done
    assert {cell.key.repetition for cell in run.cells} == {1}


def test_runs_in_one_file_are_repetitions(tmp_path: Path) -> None:
    first, second = ((FILES / f"fio-loop{n}.json").read_text() for n in (1, 2))
    joined = tmp_path / "joined.json"
    second = second.replace('"numjobs": "2"', '"numjobs": "1"').replace("2000", "1000")
    joined.write_text(f"{first}\n{second}")
    run = read("fio", [joined])
    assert [(c.key.cores, c.key.repetition) for c in run.cells] == [(1, 1), (1, 2)]


def test_several_objects_without_times_are_refused(tmp_path: Path) -> None:
    text = (FILES / "fio-2.json").read_text().replace('"elapsed" : 31,', "")
    joined = tmp_path / "joined.json"
    joined.write_text(text + text)
    with pytest.raises(FscaleError, match="several objects without times"):
        read("fio", [joined])


def test_text_around_the_json_is_ignored() -> None:
    assert (FILES / "fio-warned.json").read_text().startswith("note: both iodepth")
    (deep,) = imported("warned.json").cells
    assert (deep.key.cores, deep.ops) == (2, 512)
    assert {cell.status for cell in imported("both.txt").cells} == {"ok"}


def test_jobs_of_one_group_ran_at_once() -> None:
    run = imported("both.txt")
    assert list(points(run)) == [("reader", 2), ("writer", 2)]
    assert any(note.startswith("reader, writer ran at the same time") for note in run.notes)
    assert not any("at the same time" in note for note in imported("stages.json").notes)


def test_a_sum_of_several_jobs_is_left_out() -> None:
    with pytest.raises(FscaleError, match=r"summed 4 processes .* one with 2"):
        imported("mixed.json")
    run = imported("mixed.json", "loop1.json")
    assert list(points(run)) == [("job1", 1)]
    assert any("reader: group_reporting summed" in reason for reason in run.left_out)


def test_fio_2_has_microseconds_and_no_numjobs() -> None:
    run = imported("2.json")
    (cell,) = run.cells
    assert any(note.startswith("fio-2.2.10 does not print numjobs") for note in run.notes)
    assert (cell.key.cores, cell.ops, cell.ops_per_second, cell.seconds) == (1, 30000, 1000, 30)
    assert cell.latency is not None
    assert cell.latency["quantiles"] == {"50": 9e5, "99": 2.5e6, "99.9": 5e6, "100": 6.329e6}
    assert cell.own_cpu_seconds is None


def test_a_version_without_totals_has_those_of_its_rate(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text((FILES / "fio-2.json").read_text().replace('"total_ios" : 30000,', ""))
    (cell,) = read("fio", [path]).cells
    assert cell.ops == 30000


def test_reads_and_writes_may_be_one_figure() -> None:
    (cell,) = imported("unified.json").cells
    assert (cell.status, cell.ops) == ("ok", 10)


def test_a_job_that_failed_has_its_reason() -> None:
    (cell,) = imported("full.json").cells
    assert (cell.status, cell.fault) == ("error", "user")
    assert cell.reason == "fio: No space left on device (errno 28)"
    assert cell.ops_per_second == 0


def test_a_job_without_io_is_invalid(tmp_path: Path) -> None:
    path = tmp_path / "idle.json"
    path.write_text((FILES / "fio-full.json").read_text().replace('"error": 28', '"error": 0')
                    .replace('"total_ios": 1', '"total_ios": 0'))  # fmt: skip
    (cell,) = read("fio", [path]).cells
    assert (cell.status, cell.reason) == ("invalid", "fio did no I/O")


def test_a_job_of_less_than_a_millisecond_has_no_rate(tmp_path: Path) -> None:
    """As fio leaves a job that fails after one write; here without the failure."""
    path = tmp_path / "short.json"
    path.write_text((FILES / "fio-full.json").read_text().replace('"error": 28', '"error": 0'))
    (cell,) = read("fio", [path]).cells
    assert (cell.status, cell.reason) == ("invalid", "it took less than a millisecond")


def test_a_device_is_part_of_the_load(tmp_path: Path) -> None:
    path = tmp_path / "device.json"
    text = (FILES / "fio-loop1.json").read_text()
    path.write_text(text.replace('"directory": "/mnt/test"', '"filename": "/dev/sdx"'))
    assert "filename=/dev/sdx" in read("fio", [path]).run.loads["job1"]
    path.write_text(text.replace('"directory": "/mnt/test"', '"filename": "/mnt/file"'))
    assert read("fio", [path]).run.loads["job1"] == ["bs=4k", "rw=randwrite", "size=4M"]


def test_jobs_of_one_name_that_differ_are_several_points(tmp_path: Path) -> None:
    path = tmp_path / "64k.json"
    path.write_text((FILES / "fio-loop1.json").read_text().replace('"4k"', '"64k"'))
    run = read("fio", [FILES / "fio-loop1.json", path])
    assert [cell.key.options for cell in run.cells] == [{"bs": "4k"}, {"bs": "64k"}]
    assert {cell.key.repetition for cell in run.cells} == {1}
    assert run.run.loads == {"job1": ["rw=randwrite", "size=4M"]}


@pytest.mark.parametrize(
    ("options", "mode", "seconds"),
    [
        ('"direct": "1", "runtime": "2m"', "direct", 120),
        ('"direct": "0", "runtime": "500ms"', "buffered", 0.5),
        ('"runtime": "soon"', "buffered", 1),
    ],
)
def test_mode_and_duration_are_options(
    options: str, mode: str, seconds: float, tmp_path: Path
) -> None:
    path = tmp_path / "one.json"
    path.write_text((FILES / "fio-loop1.json").read_text().replace('"runtime": "1"', options))
    (cell,) = read("fio", [path]).cells
    assert (cell.key.mode, cell.key.duration) == (mode, seconds)
    assert not cell.key.options


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"iops": 2', '"iops": -2'), r"line 1 .*jobs\.0\.write\.iops: .* greater than or equal"),
        (('"iops": 2', '"iops": NaN, "x": 2'), r"jobs\.0\.write\.iops: .*finite"),
        (('"iops"', '"iopses"'), r"jobs\.0\.read\.iops: Field required"),
        (('"jobs"', '"client_stats"'), "jobs: Field required"),
        (('"numjobs": "1"', '"numjobs": "99999999"'), "job job1 has 99999999 processes"),
        (("]\n}", ""), r"damaged or truncated at line \d+"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    path.write_text((FILES / "fio-loop1.json").read_text().replace(*change))
    with pytest.raises(FscaleError, match=said) as raised:
        read("fio", [path])
    assert str(path) in str(raised.value) or "processes" in said
