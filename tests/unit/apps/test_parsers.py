# SPDX-License-Identifier: GPL-2.0-only
"""What the applications print, recorded from real runs, is read rightly; failures are errors."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fscale.apps.base import AppError
from fscale.apps.custom import fio
from fscale.apps.dbench import driver as dbench
from fscale.apps.exim import driver as exim
from fscale.apps.personality import driver as personality
from fscale.apps.rocksdb import driver as rocksdb
from fscale.apps.sysbench import driver as sysbench
from fscale.model import paths

FIXTURES = paths.ROOT / "tests" / "fixtures" / "apps"


def text(name: str) -> str:
    return (FIXTURES / name).read_text()


@pytest.mark.parametrize(
    ("parse", "output", "message"),
    [
        (dbench.parse, text("dbench-full.txt"), r"expected to write 65536|Child failed"),
        (dbench.parse, text("dbench.txt").split("Throughput")[0], "did not finish"),
        (
            dbench.parse,
            re.sub(r"Throughput \S+", "Throughput 0", text("dbench.txt")),
            "did nothing",
        ),
        (rocksdb.parse, text("rocksdb-full.txt"), "no figure"),
        (fio.parse, "fio: no such job", "no JSON"),
        (
            sysbench.parse,
            text("sysbench.txt")
            + "FATAL: Failed to write file! errno = 28 (No space left on device)",
            "No space left",
        ),
    ],
    ids=["dbench full", "dbench cut", "dbench idle", "rocksdb crashed", "fio", "sysbench fatal"],
)
def test_output_without_a_figure_is_an_error(
    parse: Callable[[str], object], output: str, message: str
) -> None:
    with pytest.raises(AppError, match=message):
        parse(output)


def test_dbench() -> None:
    report = dbench.parse(text("dbench.txt"))
    lines = text("dbench.txt").splitlines()
    said = next(line for line in lines if line.startswith("Throughput"))
    assert report.mb_per_second == float(said.split()[1])
    assert report.clients == 2
    assert report.seconds == 5
    assert report.mb_seconds == 4
    counts = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith(" Write")}
    assert report.operations["WriteX"] == counts["WriteX"]
    table = text("dbench.txt").split("-----\n")[1].split("\n\n")[0].splitlines()
    assert sum(report.operations.values()) == sum(int(line.split()[1]) for line in table)


def test_rocksdb() -> None:
    report = rocksdb.parse(text("rocksdb.txt"))
    line = next(
        line
        for line in text("rocksdb.txt").replace("\r", "\n").splitlines()
        if line.startswith("overwrite")
    )
    words = line.split()
    assert report.ops == int(words[words.index("operations;") - 1])
    assert report.seconds == float(words[words.index("seconds") - 1])
    # The rate that db_bench prints is ops / seconds of all threads.
    assert report.ops / report.seconds == pytest.approx(float(words[4]), rel=0.01)


def test_rocksdb_s_mix_has_no_rate_of_bytes() -> None:
    said = (
        "readrandomwriterandom :      85.377 micros/op 22909 ops/sec 1.048 seconds"
        " 23998 operations; ( reads:6500 writes:6499 total:5000 found:6500)"
    )
    report = rocksdb.parse(f"{text('rocksdb.txt')}\n{said}\n", "readrandomwriterandom")
    assert (report.ops, report.seconds, report.mb_per_second) == (23998, 1.048, None)


def test_rocksdb_output_is_kept_without_progress() -> None:
    kept = rocksdb.clean(text("rocksdb.txt"))
    assert "finished" not in kept
    assert "overwrite" in kept


def test_fio() -> None:
    report = fio.parse(text("fio.json"))
    jobs = json.loads(text("fio.json"))["jobs"]
    assert set(report.jobs) == {"reader", "writer", "log"}
    assert report.reads == next(j for j in jobs if j["jobname"] == "reader")["read"]["total_ios"]
    assert report.writes == sum(j["write"]["total_ios"] for j in jobs)
    assert report.bytes == 2048 * report.reads + sum(j["write"]["io_bytes"] for j in jobs)
    assert 0.9 < report.seconds < 1.5


def test_fio_without_percentiles_has_no_tail() -> None:
    said = json.loads(text("fio.json"))
    for way in ("read", "write", "trim"):
        for job in said["jobs"]:
            job.get(way, {}).get("clat_ns", {}).pop("percentile", None)
    assert {job["p99_ns"] for job in fio.parse(json.dumps(said, indent=1)).jobs.values()} == {None}


def test_fio_with_a_failed_job_is_an_error() -> None:
    said = json.loads(text("fio.json"))
    said["jobs"][1]["error"] = 28
    with pytest.raises(AppError, match=r"job writer failed .*errno 28") as raised:
        fio.parse(json.dumps(said, indent=1))
    assert raised.value.fault == "user"
    said["jobs"][1]["error"] = 5
    with pytest.raises(AppError, match="Input/output error") as raised:
        fio.parse(json.dumps(said, indent=1))
    assert raised.value.fault == "load"


def test_fio_whose_jobs_hide_their_errors_is_an_error() -> None:
    said = json.loads(text("fio.json"))
    said["jobs"][1] |= {"total_err": 3, "first_error": 5}
    with pytest.raises(AppError, match=r"3 failed operations .Input/output error"):
        fio.parse(json.dumps(said, indent=1))


@pytest.mark.parametrize("both", [False, True])
def test_fio_counts_reads_and_writes_that_are_one_figure(both: bool) -> None:
    said = json.loads(text("fio.json"))
    apart = fio.parse(json.dumps(said, indent=1))
    for job in said["jobs"]:
        way = max((job[way] for way in ("read", "write")), key=lambda way: way["total_ios"])
        job["mixed"] = way
        for name in () if both else ("read", "write", "trim"):
            del job[name]
    report = fio.parse(json.dumps(said, indent=1))
    assert (report.operations, report.bytes) == (apart.operations, apart.bytes)
    assert report.latency == apart.latency
    assert report.mixed == (0 if both else apart.operations)


@pytest.mark.parametrize("jobs", [[], [{}], [{"error": 0}], [{"error": 0, "read": {}}], {}, None])
def test_fio_with_json_of_another_form_is_a_sentence(jobs: object) -> None:
    with pytest.raises(AppError, match=r"the object of line 1 is not of fio: jobs") as raised:
        fio.parse(json.dumps({"jobs": jobs}, indent=1))
    assert raised.value.fault == "machine"


def test_sysbench() -> None:
    report = sysbench.parse(text("sysbench.txt"))
    lines = {
        k.strip(): v.strip()
        for k, _, v in (line.partition(":") for line in text("sysbench.txt").splitlines())
    }
    assert report.writes_per_second == float(lines["writes/s"])
    assert report.fsyncs_per_second == float(lines["fsyncs/s"])
    assert report.mib_per_second == float(lines["written, MiB/s"])
    assert report.seconds == float(lines["total time"].removesuffix("s"))


def test_catd() -> None:
    said = personality.parse(text("catd.txt"))
    assert list(said["phases"]) == ["create", "append", "truncate", "delete"]
    assert all(phase["ops"] == 400 for phase in said["phases"].values())
    assert said["bytes"] == 400 * 4096


def test_personality_error_is_an_error() -> None:
    said = json.loads(text("catd.txt").splitlines()[-1])
    with pytest.raises(AppError, match="worker 1: fsync f3: Input/output error"):
        personality.parse(json.dumps(said | {"error": "worker 1: fsync f3: Input/output error"}))
    said["phases"]["truncate"]["ops"] = 0
    with pytest.raises(AppError, match="phase truncate"):
        personality.parse(json.dumps(said))


GENERATOR = {
    "seconds": 3.0,
    "delivered": 900,
    "accepted": 901,
    "delivered_in_all": 1200,
    "accepted_in_all": 1200,
    "error": None,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": "RCPT was answered: 550 no"}, "550 no"),
        ({"delivered": 0}, "no message was delivered"),
        ({"delivered_in_all": 1199}, "1200 messages were accepted, but only 1199 were delivered"),
    ],
)
def test_exim_counts_nothing_that_went_wrong(change: dict[str, object], message: str) -> None:
    assert exim.parse(json.dumps(GENERATOR))["delivered"] == 900
    with pytest.raises(AppError, match=message):
        exim.parse(json.dumps(GENERATOR | change))


def test_exim_counts_messages_in_mail_boxes(tmp_path: Path) -> None:
    for number, messages in enumerate((2, 0, 3)):
        (tmp_path / str(number)).mkdir()
        if messages:
            letter = b"From c@fscale Fri Nov 20 13:00:00 2026\nSubject: x\n\n>From here\nx\n\n"
            (tmp_path / str(number) / "mbox").write_bytes(letter * messages)
    assert exim.count_messages(tmp_path) == 5
