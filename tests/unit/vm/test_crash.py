# SPDX-License-Identifier: GPL-2.0-only
"""The crash test's parts that need no guest: the log, the model of what must survive."""

import contextlib
import errno
import io
import json
import os
import random
import stat
import struct
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import pytest

from fscale.model import catalogue
from fscale.model.errors import FscaleError
from fscale.vm import crash, crashload, crashtest, devmapper, logwrites
from fscale.vm.crashload import Model, Operation
from fscale.vm.tasks import GuestJob

SECTOR = 512


def log_of(entries: list[tuple[int, int, bytes, str]], claimed: int | None = None) -> io.BytesIO:
    """A log as the kernel writes it, from (flags, sector, data, label)."""
    count = len(entries) if claimed is None else claimed
    out = struct.pack("<QQQI", logwrites.MAGIC, 1, count, SECTOR).ljust(SECTOR, b"\0")
    for flags, sector, data, label in entries:
        head = struct.pack("<QQQQ", sector, len(data) // SECTOR, flags, len(label))
        out += (head + label.encode()).ljust(SECTOR, b"\0")
        if not flags & logwrites.DISCARD:
            out += data
    return io.BytesIO(out)


A, B = b"a" * SECTOR, b"b" * 2 * SECTOR
LOG = [
    (0, 4, A, ""),
    (logwrites.FLUSH, 0, b"", ""),
    (logwrites.MARK, 0, b"", "0:1"),
    (logwrites.MARK, 0, b"", "1:7"),
    (logwrites.DISCARD, 0, B, ""),
    (logwrites.FUA, 6, B, ""),
]


def test_log_is_read_as_written():
    entries = logwrites.read_log(log_of(LOG))
    assert [entry.label for entry in entries] == [None, None, "0:1", "1:7", None, None]
    assert [entry.durable for entry in entries] == [False, True, False, False, False, True]
    assert (entries[5].offset, entries[5].length) == (6 * SECTOR, 2 * SECTOR)


def test_replay_puts_data_in_place_and_ignores_discards():
    log = log_of(LOG)
    device = io.BytesIO(b"\xff" * 16 * SECTOR)
    for entry in logwrites.read_log(log):
        logwrites.apply(log, entry, device)
    image = device.getvalue()
    assert image[4 * SECTOR : 5 * SECTOR] == A
    assert image[6 * SECTOR : 8 * SECTOR] == B
    assert image[: 4 * SECTOR] == b"\xff" * 4 * SECTOR


def test_a_cut_during_a_flush_may_keep_any_write_before_it():
    flags = (0, logwrites.DISCARD, logwrites.MARK, 0, logwrites.FLUSH | logwrites.FUA)
    log = log_of(
        [(flag, 2 * n, B if flag != logwrites.MARK else b"", "") for n, flag in enumerate(flags)]
    )
    entries = logwrites.read_log(log)
    assert [entry.index for entry in logwrites.under_way(entries)] == [0, 3]
    alone = logwrites.read_log(log_of([(logwrites.FUA, 0, A, "")]))
    assert logwrites.under_way(alone) == alone
    states = set()
    for seed in range(3000):
        device = io.BytesIO(bytes(16 * SECTOR))
        logwrites.apply_some(log, logwrites.under_way(entries), device, random.Random(seed))
        image = device.getvalue()
        assert image.count(0) + image.count(b"b") == len(image)
        states.add(tuple(image[n * SECTOR] for n in range(16)))
        assert {n for n in range(16) if image[n * SECTOR]} <= {0, 1, 6, 7}
    # Each of the four sectors alone, and all combinations of them, by whole writes and torn ones.
    assert len(states) == 16


def test_points_follow_flushes_and_the_last_of_marks_in_a_row():
    assert logwrites.crash_points(logwrites.read_log(log_of(LOG))) == [3, 5]


def test_a_cut_log_and_a_foreign_device_are_errors():
    with pytest.raises(FscaleError, match="ends within entry 6"):
        logwrites.read_log(log_of(LOG, claimed=7))
    with pytest.raises(FscaleError, match="no dm-log-writes log"):
        logwrites.read_log(io.BytesIO(bytes(4096)))


def test_the_ioctl_argument_has_the_kernels_layout():
    argument = devmapper.request("fscale-log", devmapper.message("mark 0:1"))
    assert devmapper._HEADER.size == 312
    # _IOWR(0xfd, 14, struct dm_ioctl), as strace shows it for dmsetup
    assert devmapper._TARGET_MSG == 0xC138FD0E
    assert struct.unpack_from("=II", argument, 12) == (len(argument), 312)
    assert argument[48:58] == b"fscale-log"
    assert argument[312:] == bytes(8) + b"mark 0:1\0"


def test_a_table_has_the_kernels_layout():
    body = devmapper.target("8 64 linear /dev/ram0 16")
    # struct dm_target_spec has 40 bytes; the next one is aligned to eight
    assert struct.unpack_from("=QQiI16s", body) == (8, 64, 0, len(body), b"linear".ljust(16, b"\0"))
    assert body[40:] == b"/dev/ram0 16".ljust(16, b"\0")
    assert devmapper.target("0 8 zero")[40:] == bytes(8)


def test_the_targets_of_a_table_go_to_the_kernel_together(monkeypatch):
    calls, nodes = [], []
    monkeypatch.setattr(
        devmapper, "_call", lambda code, argument: calls.append((code & 0xFF, argument)) or argument
    )
    monkeypatch.setattr(devmapper.os, "mknod", lambda path, *_: nodes.append(path))
    assert devmapper.create("x", "0 8 zero\n8 8 error") == str(nodes[0])
    assert [code for code, _ in calls] == [3, 9, 6]
    assert struct.unpack_from("=I", calls[1][1], 20) == (2,)


@pytest.mark.parametrize(("busy", "removed"), [(0, True), (2, True), (3, False)])
def test_a_busy_device_is_removed_when_it_is_free(busy, removed, monkeypatch, tmp_path):
    answers = iter([OSError(errno.EBUSY, "busy")] * busy + [None] * 3)

    def call(code: int, argument: bytes) -> bytes:
        if error := next(answers):
            raise error
        return argument

    monkeypatch.setattr(devmapper, "_call", call)
    monkeypatch.setattr(devmapper, "DIRECTORY", tmp_path)
    monkeypatch.setattr(devmapper, "RETRIES", 3)
    monkeypatch.setattr(devmapper, "RETRY_SECONDS", 0)
    (tmp_path / "x").touch()
    with contextlib.nullcontext() if removed else pytest.raises(OSError, match="busy"):
        devmapper.remove("x")
    assert (tmp_path / "x").exists() != removed


@pytest.mark.parametrize("workload", sorted(crashload.WORKLOADS))
def test_operations_on_a_real_directory_leave_what_the_model_says(tmp_path, workload):
    plan = list(crashload.operations(3, 0, 60, crashload.WORKLOADS[workload]))
    marks = []
    directory = tmp_path / "w0"
    try:
        crashload.work(directory, iter(plan), marks.append)
    except OSError as error:
        if workload == "shift" and error.errno == errno.EOPNOTSUPP:
            pytest.skip("the file system collapses no ranges")
        raise
    model = Model(plan)
    model.advance(60)
    assert marks == list(range(61))
    assert model.faults(directory) == []
    assert {operation.kind for operation in plan} == set(crashload.WORKLOADS[workload])


def test_operations_repeat_with_the_seed_only():
    kinds = crashload.KINDS
    assert list(crashload.operations(1, 0, 30, kinds)) == list(
        crashload.operations(1, 0, 30, kinds)
    )
    assert list(crashload.operations(1, 0, 30, kinds)) != list(
        crashload.operations(1, 1, 30, kinds)
    )


def state(
    tmp_path: Path, files: dict[str, bytes], pending: Operation, found: dict[str, bytes]
) -> list[str]:
    directory = tmp_path / "w0"
    for name in crashload.DIRECTORIES:
        (directory / name).mkdir(parents=True, exist_ok=True)
    for name, data in found.items():
        if name.endswith(")"):
            os.setxattr(directory / name.split(" ")[0], crashload.ATTRIBUTE, data)
        elif data == crashload.WHITEOUT:
            os.mknod(directory / name, stat.S_IFCHR, 0)
        else:
            (directory / name).write_bytes(data)
    return Model([pending], 0, files).faults(directory)


OLD = {"a": b"x" * 10, "b": b"y" * 10}
OF_A, OF_B, OF_C = (crashload.attribute_of(name) for name in "abc")
RENAME, WHITEOUT = (Operation(kind, "a", target="c") for kind in ("rename", "whiteout"))
WITH = {**OLD, OF_A: b"1", OF_B: b"2"}


@pytest.mark.parametrize(
    ("pending", "found"),
    [
        (Operation("create", "c", data=b"z" * 4), OLD),
        (Operation("create", "c", data=b"z" * 4), {**OLD, "c": b"z\0"}),
        (Operation("append", "a", data=b"z" * 4), {**OLD, "a": b"x" * 10 + b"z\0"}),
        (Operation("overwrite", "a", offset=2, data=b"zz"), {**OLD, "a": b"xxz" + b"x" * 7}),
        (Operation("replace", "a", data=b"z"), {**OLD, "new": b""}),
        (Operation("replace", "a", data=b"z"), {**OLD, "a": b"z"}),
        (Operation("collapse", "a", offset=2, length=3), OLD),
        (Operation("collapse", "a", offset=2, length=3), {**OLD, "a": b"x" * 7}),
        (Operation("insert", "a", offset=2, length=3), {**OLD, "a": b"xx\0\0\0" + b"x" * 8}),
        (RENAME, {"c": b"x" * 10, "b": b"y" * 10}),
        (Operation("unlink", "a"), {"b": b"y" * 10}),
        (Operation("rename", "a", target="d0/c"), {"d0/c": b"x" * 10, "b": b"y" * 10}),
        (Operation("link", "a", target="d1/c"), OLD),
        (Operation("link", "a", target="d1/c"), {**OLD, "d1/c": b"x" * 10}),
        (Operation("truncate", "a", offset=4), {**OLD, "a": b"x" * 4}),
        (Operation("truncate", "a", offset=4), {**OLD, "a": b"x" * 4 + bytes(6)}),
        (Operation("truncate", "a", offset=12), {**OLD, "a": b"x" * 10 + bytes(2)}),
    ],
)
def test_an_operation_under_way_may_be_done_or_not(tmp_path, pending, found):
    assert state(tmp_path, OLD, pending, found) == []


@pytest.mark.parametrize(
    ("pending", "found", "fault"),
    [
        (Operation("unlink", "a"), {"a": b"x" * 10}, "b is missing, though fsync'd"),
        (Operation("unlink", "a"), {**OLD, "b": b"y" * 9}, "9 bytes, not the 10"),
        (Operation("unlink", "a"), {**OLD, "b": b"y" * 9 + b"\0"}, "differs at byte 9"),
        (Operation("unlink", "a"), {**OLD, "a": b""}, "0 bytes, not the 10"),
        (Operation("unlink", "a"), {**OLD, "d": b""}, "d exists"),
        (Operation("create", "c", data=b"z"), {**OLD, "c": b"q"}, "data at byte 0"),
        (Operation("create", "c", data=b"z"), {**OLD, "c": b"zz"}, "has 2 bytes"),
        (Operation("append", "a", data=b"z"), {**OLD, "a": b"x" * 9}, "has 9 bytes"),
        (Operation("append", "a", data=b"z"), {"b": OLD["b"]}, "a is missing"),
        (Operation("overwrite", "a", data=b"zz"), {**OLD, "a": b"z\0" + b"x" * 8}, "byte 1"),
        (Operation("replace", "a", data=b"z"), {**OLD, "a": b""}, "replace is not atomic"),
        (Operation("collapse", "a", length=3), {**OLD, "a": b"x" * 8}, "collapse is not atomic"),
        (Operation("insert", "a", length=3), {**OLD, "a": b"x" * 13}, "insert is not atomic"),
        (RENAME, {**OLD, "c": OLD["a"]}, "both names are there"),
        (RENAME, {"b": OLD["b"]}, "neither name is there"),
        (RENAME, {"b": OLD["b"], "c": b""}, "0 bytes"),
        (Operation("rename", "a", target="d0/c"), {**OLD, "d0/c": OLD["a"]}, "both names are"),
        (Operation("link", "a", target="c"), {"b": OLD["b"], "c": OLD["a"]}, "only a link"),
        (Operation("link", "a", target="c"), {**OLD, "c": b""}, "c has 0 bytes"),
        (Operation("truncate", "a", offset=4), {**OLD, "a": b"x" * 3}, "has 3 bytes"),
        (Operation("truncate", "a", offset=12), {**OLD, "a": b"x" * 11}, "byte 10"),
    ],
)
def test_what_a_cut_must_never_leave_is_found(tmp_path, pending, found, fault):
    faults = state(tmp_path, OLD, pending, found)
    assert len(faults) == 1
    assert fault in faults[0]


@pytest.mark.parametrize(
    ("pending", "found"),
    [
        (Operation("setxattr", "a", data=b"3"), WITH),
        (Operation("setxattr", "a", data=b"3"), {**WITH, OF_A: b"3"}),
        (Operation("removexattr", "a"), {**OLD, OF_B: b"2"}),
        (Operation("replace", "a", data=b"z"), {**OLD, "a": b"z", OF_B: b"2"}),
        (RENAME, {"b": OLD["b"], "c": OLD["a"], OF_B: b"2", OF_C: b"1"}),
        (Operation("link", "a", target="c"), {**WITH, "c": OLD["a"], OF_C: b"1"}),
        (WHITEOUT, WITH),
        (WHITEOUT, {**OLD, "a": crashload.WHITEOUT, "c": OLD["a"], OF_B: b"2", OF_C: b"1"}),
    ],
)
def test_attributes_and_whiteouts_under_way(tmp_path, pending, found):
    assert state(tmp_path, WITH, pending, found) == []


@pytest.mark.parametrize(
    ("pending", "found", "fault"),
    [
        (Operation("setxattr", "a", data=b"3"), {**WITH, OF_A: b"4"}, "neither the old nor the"),
        (Operation("setxattr", "a", data=b"3"), {**OLD, OF_B: b"2"}, "neither the old nor the"),
        (Operation("setxattr", "a", data=b"3"), {**WITH, OF_B: b"3"}, "differs at byte 0"),
        (Operation("setxattr", "a", data=b"3"), {**WITH, "a": b"x"}, "a has 1 bytes"),
        (Operation("unlink", "b"), {"a": OLD["a"]}, f"{OF_A} is missing, though fsync'd"),
        (Operation("link", "a", target="c"), {**WITH, "c": OLD["a"]}, "neither the old nor the"),
        (RENAME, {"b": OLD["b"], "c": OLD["a"], OF_B: b"2"}, "neither the old nor the new"),
        (WHITEOUT, {"b": OLD["b"], "c": OLD["a"], OF_B: b"2", OF_C: b"1"}, "not atomic"),
        (WHITEOUT, {**OLD, "a": crashload.WHITEOUT, OF_B: b"2"}, "not atomic"),
        (WHITEOUT, {**WITH, "c": b"", OF_C: b"1"}, "not atomic"),
    ],
)
def test_lost_attributes_and_halves_of_whiteouts_are_found(tmp_path, pending, found, fault):
    faults = state(tmp_path, WITH, pending, found)
    assert len(faults) == 1, faults
    assert fault in faults[0]


def test_no_bytes_of_a_file_with_two_names_are_changed():
    names: dict[str, int] = {}
    for operation in crashload.operations(1, 0, 400, crashload.KINDS):
        if operation.kind == "link":
            names[operation.name] = names[operation.target or ""] = 1
        elif operation.kind == "replace":
            names.pop(operation.name, None)
        elif operation.kind == "rename" and operation.name in names:
            names[operation.target or ""] = 1
        elif operation.kind in crashload.CHANGES:
            assert operation.name not in names


def test_a_directory_that_was_made_durable_must_exist(tmp_path):
    assert "missing" in Model([], 0).faults(tmp_path / "w0")[0]
    assert Model([], None).faults(tmp_path / "w0") == []
    (tmp_path / "w0").mkdir()
    assert Model([], 0).faults(tmp_path / "w0")[0] == "w0/d0/ is missing, though fsync'd"


def test_points_are_spread_evenly_and_end_with_the_last():
    assert crashtest.pick_spaced([1, 2, 3], 5) == {1, 2, 3}
    chosen = sorted(crashtest.pick_spaced(list(range(100)), 10))
    assert chosen == [9, 19, 29, 39, 49, 59, 69, 79, 89, 99]


def test_what_holds_a_mapped_device_does_not_hide_the_fault(monkeypatch):
    def busy(_name: str) -> None:
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(devmapper, "create", lambda name, _table: name)
    monkeypatch.setattr(devmapper, "remove", busy)
    with pytest.raises(ValueError, match="first"), crashtest.map_device("x", "0 8 zero"):
        raise ValueError("first")
    with pytest.raises(FscaleError, match="busy"), crashtest.map_device("x", "0 8 zero"):
        pass


def test_flushes_reach_the_log_of_writes_from_a_single_thread(monkeypatch):
    tables = []

    @contextlib.contextmanager
    def mapped(name, table):
        tables.append(table)
        yield f"/dev/mapper/{name}"

    monkeypatch.setattr(crashtest, "map_device", mapped)
    with crashtest.recorder("/dev/ram0", Path("/dev/ram1"), 1 << 20) as device:
        assert device == f"/dev/mapper/{crashtest.IN_TURN}"
    recorded = f"/dev/mapper/{crashtest.RECORDER}"
    delays = " ".join(f"{recorded} 0 {milliseconds}" for milliseconds in (0, 0, 1))
    assert tables == ["0 2048 log-writes /dev/ram0 /dev/ram1", f"0 2048 delay {delays}"]


def spec(filesystem: str = "ext4", **changes: object) -> crashtest.Spec:
    options = {
        "workload": "mix",
        "points": 200,
        "workers": 4,
        "seed": 1,
        "fsck": None,
        "mount_options": None,
        "plant": None,
    }
    return crash.specify(catalogue.load_filesystem(filesystem), **{**options, **changes})


def test_the_test_of_ext4_uses_its_own_mkfs_and_fsck():
    made = spec()
    assert made.mkfs[0] == "mkfs.ext4"
    assert made.fsck == ["e2fsck", "-f", "-n", "{device}"]
    assert made.operations * made.workers >= 200


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"workload": "mxi"}, "crash workload mxi"), ({"plant": "nothing"}, "fault nothing")],
)
def test_bad_crash_options_are_refused(changes, message):
    with pytest.raises(FscaleError, match=message):
        spec(**changes)


def test_tmpfs_cannot_be_crash_tested():
    with pytest.raises(FscaleError, match="keeps nothing"):
        spec("tmpfs")


def test_the_verdict_names_the_first_point():
    good = crashtest.Result(entries=9, flushes=3, possible=3, tested=3)
    told = crash.verdict("lanefs_log", spec(), good)
    assert told.startswith("lanefs_log: 3 crash points") and "fsync'd" in told
    bad = crashtest.Result(
        tested=3, failing=2, first={"entry": 5, "what": "fsck", "text": "bad count"}
    )
    assert "after log entry 5, fsck fails:\nbad count" in crash.verdict("ext4", spec(), bad)


class Elsewhere:
    """In the place of machines that boot guests: what each tested is made up."""

    def __init__(self, silent: int | None = None):
        self.silent = silent
        self.specs: list[crashtest.Spec] = []

    def run(self, boots: list[GuestJob]) -> None:
        for number, boot in enumerate(boots):
            asked = boot.job.files["crash-spec.json"].read_text()
            self.specs.append(crashtest.Spec(**json.loads(asked)))
            assert boot.job.files.keys() == {"crash-spec.json", "bin/mkfs.my"}
            boot.output.mkdir(parents=True)
            boot.output.with_suffix(".log").write_text("a worker failed")
            if number == self.silent:
                continue
            made = crashtest.Result(tested=40, failing=number, seconds={"replay": 1.5})
            if number:
                made.first = {"entry": number, "what": "fsck", "text": "bad count"}
            (boot.output / "crash.json").write_text(json.dumps(asdict(made)))


def whole_boot(tmp_path: Path) -> GuestJob:
    """The boot that would test all points here."""
    job = crash.job(spec(), tmp_path / "here", tmp_path / "out")
    return GuestJob(cast("Any", None), replace(job, files={**job.files, "bin/mkfs.my": tmp_path}))


def test_guests_elsewhere_test_parts_of_the_points(tmp_path, monkeypatch):
    monkeypatch.setattr(crash, "POINTS_PER_BOOT", 80)
    elsewhere = Elsewhere()
    found = crash.run_elsewhere(
        whole_boot(tmp_path), spec(), tmp_path / "scratch", cast("Any", elsewhere)
    )
    assert [(one.part, one.parts) for one in elsewhere.specs] == [(0, 3), (1, 3), (2, 3)]
    assert [replace(one, part=0, parts=1) for one in elsewhere.specs] == [spec()] * 3
    assert (found.tested, found.failing, found.seconds) == (120, 3, {"replay": 4.5})
    assert found.first == {"entry": 1, "what": "fsck in guest 2", "text": "bad count"}
    assert crash.load(tmp_path / "out", "") == found


def test_a_guest_elsewhere_without_a_result_is_an_error(tmp_path):
    with pytest.raises(FscaleError, match="a worker failed"):
        crash.run_elsewhere(
            whole_boot(tmp_path), spec(), tmp_path / "scratch", cast("Any", Elsewhere(2))
        )


@pytest.mark.parametrize("text", ["", "[]", '{"tested": "many"}', '{"first": 7}'])
def test_what_is_no_result_is_an_error(text, tmp_path):
    (tmp_path / "crash.json").write_text(text)
    with pytest.raises(FscaleError, match=r"crash\.json"):
        crash.load(tmp_path, "")


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_parts_have_every_point_once(parts, tmp_path, monkeypatch):
    log = [(logwrites.FLUSH, 0, b"", "")] * 20
    (tmp_path / "log").write_bytes(log_of(log).getvalue())
    (tmp_path / "image").touch()
    monkeypatch.setattr(crashtest, "LOG", tmp_path / "log")
    monkeypatch.setattr(crashtest, "IMAGE", tmp_path / "image")
    tested: list[int] = []

    def step(state, entry, chosen):
        tested.extend([entry.index] if chosen else [])

    monkeypatch.setattr(crashtest.Replay, "step", step)
    for part in range(parts):
        asked = replace(spec(), points=10, part=part, parts=parts)
        crashtest.replay(asked, crashtest.Result())
    assert sorted(tested) == list(range(1, 20, 2))


class Worker:
    """One that ends after so many looks at it."""

    def __init__(self, looks):
        self.looks = looks

    def is_alive(self):
        self.looks -= 1
        return self.looks >= 0


def test_remounts_take_turns_until_the_workers_end(monkeypatch):
    asked = []
    monkeypatch.setattr(crashtest, "command", lambda argv: asked.append(argv[2]))
    monkeypatch.setattr(crashtest, "REMOUNT_SECONDS", 0)
    crashtest._remount(["a=1", "a=2"], [Worker(3)])
    assert asked == ["remount,a=1", "remount,a=2", "remount,a=1"]
    with pytest.raises(FscaleError, match=r"before the first remount.*--points"):
        crashtest._remount(["a=1", "a=2"], [Worker(0)])


@pytest.mark.parametrize(("second", "told"), [(0, "succeeds"), (32, "fails as well")])
def test_a_mount_that_fails_is_told_with_the_kernels_words_and_a_second_mount(
    second, told, monkeypatch
):
    codes = iter([32, second])
    commands = []

    def run(argv, **_: object):
        code = next(codes) if argv[0] == "mount" else 0
        said = "lanefs (dm-0): damaged" if argv[0] == "dmesg" else ""
        return subprocess.CompletedProcess(argv, code, said, "Structure needs cleaning")

    monkeypatch.setattr(crashtest, "power_cut", lambda *_: contextlib.nullcontext("/dev/dm-0"))
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(crashtest, "command", commands.append)
    failed = crashtest.examine(spec(), [])
    assert failed is not None
    what, text = failed
    assert what == "mount"
    assert "damaged" in text
    assert text.endswith(told)
    assert len(commands) == (second == 0)
