# SPDX-License-Identifier: GPL-2.0-only
"""The frame of the applications: processes, options, CPU accounting, the runner's view."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

from fscale.apps.adapter import AppLoad, directories
from fscale.apps.base import App, AppError, Site, settings
from fscale.apps.dbench.driver import Dbench
from fscale.apps.exim.driver import DESCRIPTOR, Exim
from fscale.apps.meter import Edge, Meter, between
from fscale.apps.process import FileSystemFullError, Processes, failure
from fscale.apps.registry import applications
from fscale.model import catalogue, paths
from fscale.model.config import Medium, Suite
from fscale.model.errors import FscaleError
from fscale.model.load import LoadSettings, Target
from fscale.model.variant import split_partitions
from fscale.runner import plan
from tests.support import synthetic

CPU = min(os.sched_getaffinity(0))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(dirs=[tmp_path], cpus=[CPU], scratch=tmp_path, space=1 << 20)


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_a_program_runs_on_the_cpus_under_test(site: Site) -> None:
    with Processes(site) as processes:
        out = processes.run(python("import os; print(os.sched_getaffinity(0))"), timeout=10)
    assert out == f"{{{CPU}}}\n"
    assert processes.commands[0].argv[:3] == ["taskset", "--cpu-list", str(CPU)]


def test_a_failure_is_told_with_the_last_words(site: Site) -> None:
    with (
        Processes(site) as processes,
        pytest.raises(AppError, match="ended with exit code 3: cannot do it"),
    ):
        processes.run(python("print('fine\\ncannot do it'); raise SystemExit(3)"), timeout=10)


def test_a_program_that_hangs_is_killed(site: Site) -> None:
    with Processes(site) as processes:
        started = time.monotonic()
        with pytest.raises(AppError, match="hung"):
            processes.run(python("import time; time.sleep(60)"), timeout=0.5)
    assert time.monotonic() - started < 5
    assert processes.commands[0].returncode == -9


def test_children_of_a_program_are_gone_at_the_end(site: Site, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    fork = (
        "import os, pathlib, time\n"
        "if os.fork() == 0:\n"
        f"    pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n"
    )
    with Processes(site) as processes:
        with (tmp_path / "out").open("wb") as out:
            processes.start(python(fork), output=out)
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.01)
    child = Path(f"/proc/{pid.read_text()}/stat")
    assert not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_full_file_system_is_named() -> None:
    full = failure("x", 1, "write: No space left on device")
    assert isinstance(full, FileSystemFullError) and "file system is full" in str(full)
    assert "was killed by SIGABRT" in str(failure("x", -6, "Assertion `a' failed."))


def test_settings() -> None:
    assert settings(DESCRIPTOR, {})["spools"] == 60
    assert settings(DESCRIPTOR, {"spools": "3"})["spools"] == 3
    for wrong, message in (
        ({"spool": 1}, "has no option spool"),
        ({"spools": "many"}, "spools cannot be many; give a whole number, 1 or more"),
        ({"spools": 0}, "spools cannot be 0"),
        ({"port": 65536}, "port cannot be 65536; give a whole number from 0 to 65535"),
        ({"fsync": "maybe"}, "fsync cannot be maybe; give on or off"),
    ):
        with pytest.raises(AppError, match=message):
            settings(DESCRIPTOR, wrong)


def test_each_option_says_which_numbers_it_takes() -> None:
    for app in applications():
        for option in app.descriptor.options:
            assert option.accepts(option.default), (app.descriptor.id, option.name)
            if app.descriptor.definition is None:
                assert (option.least is not None) == isinstance(option.default, int), option.name


def test_meter_adds_up_the_cpus_under_test(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    hertz = os.sysconf("SC_CLK_TCK")
    stat.write_text("cpu 1 1 1\ncpu0 10 1 5 100 2 3 4 5 6 7\ncpu1 0 0 0 0 0 0 0 0 0 0\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 1000000\nuser_usec 0\n")
    meter = Meter([0], tmp_path, stat)
    start = meter.read()
    stat.write_text("cpu 1 1 1\ncpu0 30 11 25 140 2 3 14 5 6 7\ncpu1 99 0 0 0 0 0 0 0 0 0\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 0\n")
    usage = between(start, meter.read())
    assert usage.cpu.user == pytest.approx(30 / hertz)  # 20 user and 10 nice
    assert usage.cpu.idle == pytest.approx(40 / hertz)
    assert usage.busy == pytest.approx((30 + 20 + 10) / hertz)
    assert usage.own == pytest.approx(0.5)
    assert usage.late == 0


def test_meter_says_how_late_it_was() -> None:
    start, end = Edge(10.0, (0,) * 8, None), Edge(12.25, (0,) * 8, None)
    late_ns = [(9_900_000_000, 12_000_000_000), (9_700_000_000, 12_250_000_000)]
    assert [between(start, end, window).late for window in late_ns] == pytest.approx([0.25, 0.3])
    assert between(start, end, (10_001_000_000, 12_251_000_000)).late == 0


def target(filesystem: str, tmp_path: Path, partitions: int = 1) -> Target:
    key = synthetic.key(
        workload="exim", filesystem=filesystem, duration=2, options={"fsync": "off"}
    )
    return Target(key, tmp_path, [0], 7, 1 << 30, tmp_path / "scratch", None, partitions)


def test_the_runner_gives_a_directory_a_partition(tmp_path: Path) -> None:
    assert directories(target("ext4", tmp_path)) == [tmp_path]
    assert directories(target("ext4:mount=data=journal", tmp_path)) == [tmp_path]
    many = directories(target("ext4:3", tmp_path, 3))
    assert many == [tmp_path / str(n) / "work" for n in range(3)]


def test_the_runner_asks_for_turns_of_those_that_take_them(tmp_path: Path) -> None:
    assert {app.descriptor.id for app in applications() if AppLoad(app).sliced} == {
        "varmail",
        "fileserver",
    }
    load, where = AppLoad(Exim()), target("ext4", tmp_path)
    whole = load.command(where, LoadSettings(warmup=1), (3, 4))
    assert whole[-2:] == ["--sync-fds", "3,4"]
    turning = load.command(where, LoadSettings(warmup=1, slice=0.01), (3, 4))
    assert turning == [*whole, "--slice", "0.01"]
    settled = LoadSettings(warmup=1, slice=0.01, settle=True)
    assert load.command(where, settled, (3, 4))[-1] == "--settle"


def test_the_runner_reads_results_and_failures(tmp_path: Path) -> None:
    load = AppLoad(Exim())
    where = target("ext4", tmp_path)
    good = {
        "schema_version": 1,
        "workload": "exim",
        "status": "ok",
        "reason": None,
        "amount": 600,
        "unit": "messages",
        "seconds": 2.0,
        "own_cpu_seconds": 1.5,
        "busy_cpu_seconds": 1.75,
        "extra": {"label": "x"},
    }
    outcome = load.parse(where, 0, json.dumps(good), "")
    assert (outcome.status, outcome.ops, outcome.unit) == ("ok", 600, "messages")
    assert outcome.others_cpu_seconds == pytest.approx(0.25)
    assert load.parse(where, 1, json.dumps(good), "boom").status == "error"
    assert load.parse(where, -9, "", "Traceback").reason == (
        "exim gave no result (signal 9): Traceback"
    )
    late = load.parse(where, 0, json.dumps(good | {"late_seconds": 0.3}), "")
    assert (late.status, late.ops) == ("invalid", 600)
    assert "noticed 0.30 s late" in str(late.reason)
    assert load.parse(where, 0, json.dumps(good | {"late_seconds": 0.09}), "").status == "ok"
    failed = {"schema_version": 1, "workload": "exim", "status": "error", "reason": "disk full"}
    outcome = load.parse(where, 1, json.dumps(failed), "")
    assert (outcome.status, outcome.reason, outcome.ops) == ("error", "disk full", 0)


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fscale.apps.packaged.which", lambda _: None)
    monkeypatch.setattr("fscale.apps.exim.driver.which", lambda _: None)
    assert AppLoad(Dbench()).missing() == "it needs dbench; apt-get install dbench"
    assert str(paths.PACKAGE / "apps/exim/install.sh") in (AppLoad(Exim()).missing() or "")


def test_all_applications_are_found() -> None:
    found: list[App] = applications()
    assert {app.descriptor.id for app in found} >= {
        "exim", "rocksdb", "dbench", "varmail", "fileserver", "catd", "sysbench",
        "fio_randwrite", "fio_logwrite", "fio_oltp",
    }  # fmt: skip


def test_partitions_are_part_of_a_file_system_name() -> None:
    assert split_partitions("ext4:8") == ("ext4", 8)
    assert catalogue.load_filesystem("ext4:8").partitions == 8
    assert catalogue.load_filesystem("ext4").partitions == 1
    for wrong in ("ext4:", "ext4:1", "ext4:x", "ext4:129"):
        with pytest.raises(FscaleError, match="number of partitions"):
            catalogue.load_filesystem(wrong)


def test_only_loads_that_can_be_spread_get_partitions() -> None:
    suite = Suite(
        title="t", workloads=["exim", "dbench"], filesystems=["ext4", "ext4:4"], media=["ram"],
        cores=[1], duration=5, repetitions=1,
    )  # fmt: skip
    descriptors = {app.descriptor.id: app.descriptor for app in applications()}
    media = {"ram": Medium(title="m", kind="loop", size=1 << 30)}
    filesystems = {name: catalogue.load_filesystem(name) for name in suite.filesystems}
    cells = plan.make_keys(suite, descriptors, media, filesystems, [1], seed=1)
    assert {(c.workload, c.filesystem) for c in cells} == {
        ("exim", "ext4"), ("exim", "ext4:4"), ("dbench", "ext4"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "text", "fault"),
    [
        (1, "dd: error writing: No space left on device", "user"),
        (1, "dd: error writing: Disk quota exceeded", "user"),
        (1, "dd: error writing: Input/output error", "load"),
        (1, "cannot fork: Cannot allocate memory", "machine"),
        (-9, "", "machine"),
        (137, "", "machine"),
        (-11, "", "load"),
    ],
)
def test_whose_fault_a_failed_program_is(code: int, text: str, fault: str) -> None:
    error = failure("dd", code, text)
    assert error.fault == fault
    printed = {
        "schema_version": 1,
        "workload": "dbench",
        "status": "error",
        "reason": str(error),
        "fault": error.fault,
    }
    load = AppLoad(Dbench())
    target = Target(synthetic.key(), Path("/d"), [0], 1, 1, Path("/s"), None)
    assert load.parse(target, 1, json.dumps(printed), "").fault == fault
