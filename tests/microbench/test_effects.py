# SPDX-License-Identifier: GPL-2.0-only
"""What each workload leaves behind in the file system, and how stocks are used up."""

import os
import shutil
import signal
import stat
import time

import pytest

from fscale.model.catalogue import load_suite
from fscale.model.paths import SUITES
from tests.support import bench

pytestmark = pytest.mark.live

# A stock of a few hundred lasts for a millisecond: there is no time for a ramp.
QUICK = ("--duration", "0.1", "--warmup", "0", "--min-window", "0.0001")
CONSUMING = ["DWAL", "DWTL", "MWCL", "MWCM", "MWRL", "MWRM", "MWUL", "MWUM"]
COPIED_UP = ["copy_up_dir", "copy_up_private"]
BLOCK = 4096
PAGE = os.sysconf("SC_PAGESIZE")
FILES = {
    "private": {"0/file": 0, "1/file": 0},
    "dir": {"share/file.0": 0, "share/file.1": 0},
    "shared": {"share/file": 0},
}
LEAVE_THEIR_FILE = ("getxattr", "setxattr", "flock", "fcntl_lock")
LEAVE_NOTHING = ("create_unlink", "create_fsync", "missing", "mkdir", "symlink")


def walk(directory, within=""):
    """The relative path and the stat of all files below a directory."""
    with os.scandir(directory) as entries:  # rglob takes seconds for the 32768 of a tree
        for entry in entries:
            path = f"{within}{entry.name}"
            if entry.is_dir():
                yield from walk(entry.path, f"{path}/")
            else:
                yield path, entry.stat()


def files(directory):
    """All files below a directory: relative path -> size."""
    return {path: stat.st_size for path, stat in walk(directory)}


def numbers(first, end):
    return [f"{n:08x}" for n in range(first, end)]


def consume(workload, directory):
    """Run on one CPU with a stock of 600; how many units the last window used, and the output."""
    for _ in range(3):
        given = (*QUICK, "--max-stock", "600")
        out = bench.run_good(workload, directory, *given, few=1200, bound="maximum")
        # The time may end a window before its stock does where others had the CPU.
        if all(window.end == "exhausted" for window in out.windows[:-1]):
            break
        shutil.rmtree(directory)
    assert (out.stock.per_worker, out.stock.bound) == (600, "maximum")
    assert out.stock.restocks > 0
    return out.executed_ops - 600 * out.stock.restocks, out


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ("DRBL", {"0/data": BLOCK, "1/data": BLOCK}),
        ("DRBM", {"share": 2 * BLOCK}),
        ("DRBH", {"share": BLOCK}),
        ("DWOL", {"0/data": BLOCK, "1/data": BLOCK}),
        ("DWOM", {"share": 2 * BLOCK}),
        ("DWSL", {"0/data": BLOCK, "1/data": BLOCK}),
        ("MRPL", {"0/0/0/0/0": 0, "1/0/0/0/0": 0}),
        ("MRPH", {"0/0/0/0/0": 0}),
        ("MRDL", {f"{d}/{n}": 0 for d in "01" for n in numbers(0, 1000)}),
        ("MRDM", {f"share/{n}": 0 for n in numbers(0, 1000)}),
        *((f"creat_{sharing}", names) for sharing, names in FILES.items()),
        *((f"link_{sharing}", FILES[sharing]) for sharing in FILES),
        *((f"replace_{sharing}", FILES[sharing]) for sharing in ("private", "dir")),
        *((f"{name}_private", FILES["private"]) for name in LEAVE_THEIR_FILE),
        *((f"{name}_shared", FILES["shared"]) for name in LEAVE_THEIR_FILE),
        *((f"{name}_private", {}) for name in (*LEAVE_NOTHING, "tmpfile")),
        *((f"{name}_dir", {}) for name in LEAVE_NOTHING if name != "missing"),
        ("missing_shared", {}),
        ("fallocate_private", {"0/data": 0, "1/data": 0}),
        ("write_stat_private", {"0/data": BLOCK, "1/data": BLOCK}),
        ("syncfs_private", {"0/data": BLOCK, "1/data": BLOCK}),
        ("uring_write_private", dict.fromkeys(FILES["private"], BLOCK)),
        ("uring_write_shared", {"share/file": 2 * BLOCK}),
        ("fault_private", dict.fromkeys(FILES["private"], 256 * PAGE)),
        ("fault_shared", {"share/file": 2 * 256 * PAGE}),
    ],
)
def test_leaves_alone(workload, expected, tmp_path):
    bench.run_good(workload, tmp_path / "d", *QUICK, count=2)
    assert files(tmp_path / "d") == expected


@pytest.mark.parametrize("workload", ["DRBM", "DWOM"])
def test_blocks_of_a_shared_file_are_private(workload, tmp_path):
    bench.run_good(workload, tmp_path / "d", *QUICK, count=2)
    assert (tmp_path / "d" / "share").read_bytes() == b"a" * BLOCK + b"b" * BLOCK


@pytest.mark.parametrize("workload", ["MRPM", "MRPM_bg"])
def test_tree(workload, tmp_path):
    bench.run_good(workload, tmp_path / "d", *QUICK)
    digits = "01234567"
    tree = {f"{a}/{b}/{c}/{d}/{e}": 0 for a in digits for b in digits for c in digits
            for d in digits for e in digits}  # fmt: skip
    assert files(tmp_path / "d") == tree


def test_dwal(fast):
    last, _ = consume("DWAL", fast / "d")
    assert files(fast / "d") == {"0/data": last * BLOCK}


def test_dwtl(fast):
    last, _ = consume("DWTL", fast / "d")
    assert files(fast / "d") == {"0/data": (600 - last) * BLOCK}


STEADY = {"MWCL": "0/", "MWCM": "share/0.", "MWUL": "0/", "MWUM": "share/0."}


@pytest.mark.parametrize(("workload", "prefix"), STEADY.items())
def test_a_steady_state_keeps_the_youngest_files(workload, prefix, fast):
    """One window, however small the stock; each operation made a file and took one away."""
    out = bench.run_good(workload, fast / "d", *QUICK, "--option", "keep=50", "--max-stock", "600")
    assert (out.stock.steady, out.stock.per_worker, out.stock.restocks) == (True, 50, 0)
    assert out.stock.pilot_ops_per_second is None
    assert (len(out.windows), out.end) == (1, "time")
    assert out.ops > 50 * len(out.workers)
    made = 50 + out.executed_ops
    left = counted(files(fast / "d"), prefix)
    assert left == list(range(made - 50, made))


def test_a_steady_state_keeps_the_end_of_a_file(fast):
    keep = ("--option", "keep=1000", "--max-stock", "2000")
    out = bench.run_good("DWAL", fast / "d", *QUICK, *keep, few=4000)
    assert (len(out.windows), out.end, out.stock.restocks) == (1, "time", 0)
    assert out.ops > 4000
    file = fast / "d/0/data"
    blocks = 1000 + out.executed_ops
    assert file.stat().st_size == blocks * BLOCK
    with file.open("rb") as data:
        begin = os.lseek(data.fileno(), 0, os.SEEK_DATA) // BLOCK
        assert os.lseek(data.fileno(), begin * BLOCK, os.SEEK_HOLE) == blocks * BLOCK
    # The oldest 256 go together.
    assert begin % 256 == 0
    assert 1000 <= blocks - begin <= 1000 + 256


@pytest.mark.parametrize("workload", [*STEADY, "DWAL"])
def test_what_a_steady_state_keeps_is_bounded_as_a_stock_is(workload, fast):
    keep = ("--option", "keep=5000", "--max-stock", "600")
    out = bench.run_good(workload, fast / "d", *QUICK, *keep, count=2)
    stock = out.stock
    assert (stock.per_worker, stock.wanted, stock.bound) == (600, 5000, "maximum")


def test_a_steady_state_is_counted_in_windows_too(fast):
    counted_ = ("--windows", "5", "--window-ops", "40", "--option", "keep=50")
    out = bench.run_good("MWCL", fast / "d", *counted_)
    assert out.ops >= 5 * 40
    assert len(files(fast / "d")) == 50


def counted(paths, prefix, suffix=""):
    """The numbers of these files, rising."""
    return sorted(int(p.removeprefix(prefix).removesuffix(suffix), 16) for p in paths)


def consecutive(found, least):
    """Whether numbers follow on one another, from `least` or later on."""
    first = found[0] if found else least
    return first >= least and found == list(range(first, first + len(found)))


CREATING = {"MWCL": "0/", "MWCM": "share/0.", "create_write_private": "0/"}


@pytest.mark.parametrize(("workload", "prefix"), CREATING.items())
def test_create(workload, prefix, fast):
    last, out = consume(workload, fast / "d")
    left = files(fast / "d")
    assert len(left) == last
    assert set(left.values()) <= {BLOCK if workload == "create_write_private" else 0}
    assert consecutive(counted(left, prefix), 600 * out.stock.restocks)


@pytest.mark.parametrize(("workload", "prefix"), [("MWUL", "0/"), ("MWUM", "share/0.")])
def test_unlink(workload, prefix, fast):
    last, out = consume(workload, fast / "d")
    left = files(fast / "d")
    assert len(left) == 600 - last
    assert consecutive(counted(left, prefix), out.executed_ops)


@pytest.mark.parametrize(
    ("workload", "prefix", "suffix"), [("MWRL", "0/", ".2"), ("MWRM", "share/0.", "")]
)
def test_rename(workload, prefix, suffix, fast):
    """Files keep their numbers; those that are not renamed yet come after the others."""
    last, out = consume(workload, fast / "d")
    left = files(fast / "d")
    renamed = {path for path in left if path.startswith(prefix) and path.endswith(suffix)}
    assert (len(renamed), len(left)) == (last, 600)
    found = counted(renamed, prefix, suffix) + counted(left.keys() - renamed, "0/")
    assert consecutive(found, 600 * out.stock.restocks)


@bench.needs_root
@pytest.mark.parametrize(("workload", "place", "prefix"), [
    ("copy_up_private", "0", ""), ("copy_up_dir", "share", "0."),
])  # fmt: skip
def test_copy_up(workload, place, prefix, fast):
    """The files that one window used are in the upper layer, whole, and stay in the lower one."""
    last, out = consume(workload, fast / "d")
    left = files(fast / "d")
    lower, upper = (
        counted([path for path in left if path.startswith(start)], start)
        for start in (f"{place}/lower/{prefix}", f"{place}/upper/{prefix}")
    )
    assert (len(lower), len(upper)) == (600, last)
    assert lower[:last] == upper
    assert consecutive(lower, out.executed_ops - last)
    assert set(left.values()) == {BLOCK}
    contents = {(fast / "d" / path).read_bytes() for path in left}
    assert contents == {b"a" + bytes(BLOCK - 1)}


@bench.needs_root
@pytest.mark.parametrize(("workload", "names"), [
    ("whiteout_private", ["0/{}/00000000", "1/{}/00000000"]),
    ("whiteout_dir", ["share/{}/0.00000000", "share/{}/1.00000000"]),
])  # fmt: skip
def test_whiteout(workload, names, fast):
    """The upper layer has a whiteout (a device 0:0) now and then, and the new file at the end."""
    long = ("--duration", "60", "--warmup", "0.02")
    process, _ = bench.start(workload, fast / "d", *long, count=2)
    hidden = [fast / "d" / name.format("upper") for name in names]
    deadline = time.monotonic() + 20
    while hidden and time.monotonic() < deadline:
        hidden = [path for path in hidden if not is_whiteout(path)]
    process.send_signal(signal.SIGINT)
    code, _ = bench.finish(process)
    assert (code, hidden) == (3, [])
    left = {path: size for path, size in files(fast / "d").items() if "/work/" not in path}
    assert left == {name.format(layer): 0 for name in names for layer in ("lower", "upper")}
    # An interrupted worker may have stopped between the two calls.
    bench.run_good(workload, fast / "e", "--duration", "0.1", "--warmup", "0.02", count=2, few=50)
    assert all((fast / "e" / name.format("upper")).is_file() for name in names)


def is_whiteout(path):
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def test_rename_of_one_file(fast):
    """With `files=one` there is one file, renamed over and over."""
    out = bench.run_good("MWRL", fast / "d", *QUICK, "--max-stock", "600", "--option", "files=one")
    assert out.stock.restocks > 0
    (left,) = files(fast / "d")
    renames = int(left.removeprefix("0/"), 16)
    assert 256 <= renames - out.executed_ops <= 4 * 600


@pytest.mark.parametrize(("workload", "path"), [
    ("DRBL_bg", "0/data"), ("DRBM_bg", "share"), ("DRBH_bg", "share"),
])  # fmt: skip
def test_writer_overwrites_what_is_read(workload, path, tmp_path):
    """The writer counts in the first eight bytes; the rest of its buffer is the letter b."""
    out = bench.run_good(workload, tmp_path / "d", *QUICK)
    content = (tmp_path / "d" / path).read_bytes()
    assert content[8:] == b"b" * (BLOCK - 8)
    written = int.from_bytes(content[:8], "little") - int.from_bytes(b"b" * 8, "little")
    assert written >= out.background.ops > 0


@pytest.mark.parametrize(("workload", "directory"), [("MRDL_bg", "0"), ("MRDM_bg", "share")])
def test_writer_renames_what_is_read(workload, directory, tmp_path):
    bench.run_good(workload, tmp_path / "d", *QUICK, "--option", "entries=100")
    left = [p.name for p in (tmp_path / "d" / directory).iterdir()]
    assert sorted(n.removesuffix(".2") for n in left) == numbers(0, 100)
    assert sum(n.endswith(".2") for n in left) <= 1
    made = max(p.stat().st_mtime_ns for p in (tmp_path / "d" / directory).iterdir())
    assert (tmp_path / "d" / directory).stat().st_mtime_ns > made


def test_writer_exchanges_files(tmp_path):
    bench.run_good("MRPM_bg", tmp_path / "d", *QUICK)
    made = max(stat.st_mtime_ns for _, stat in walk(tmp_path / "d"))
    leaves = (tmp_path / "d").glob("?/?/?/?")
    assert sum(p.stat().st_mtime_ns > made for p in leaves) > 10


@pytest.mark.parametrize("workload", bench.parameters(CONSUMING + COPIED_UP))
def test_windows_end_for_all(workload, fast):
    """The first to run out ends the window for both, and windows add up to the duration."""
    most = 300 if workload in COPIED_UP else 2000
    stock = ("--max-stock", str(most))
    out = bench.run_good(workload, fast / "d", *QUICK, *stock, count=2, few=2 * most)
    assert len(out.windows) > 1
    assert {w.end for w in out.windows[:-1]} == {"exhausted"}
    assert out.end == "time"
    assert out.seconds == pytest.approx(sum(w.seconds for w in out.windows))
    assert out.seconds >= 0.1
    assert out.ops == sum(sum(w.ops) for w in out.windows) == sum(w.ops for w in out.workers)
    assert all(max(w.ops) <= most for w in out.windows)
    assert out.executed_ops <= 2 * most * (out.stock.restocks + 1)


def test_stock_follows_the_pilot(tmp_path):
    for attempt in range(10):  # a stock that did not last was made larger
        directory = tmp_path / str(attempt)
        out = bench.run_good("DWAL", directory, "--duration", "0.3", "--warmup", "0.1")
        if out.stock.restocks == 0:
            break
    assert (out.stock.bound, out.stock.restocks) == ("pilot", 0)
    assert out.stock.wanted == pytest.approx(out.stock.pilot_ops_per_second * 0.4 * 1.25, rel=0.01)


@pytest.mark.parametrize("workload", bench.parameters(bench.WORKLOADS))
def test_counts_agree(workload, fast, tmp_path, monkeypatch):
    """Windows, workers, intervals and totals are sums of one count; no sanitizer complains."""
    log = tmp_path / "sanitizer"
    monkeypatch.setenv("ASAN_OPTIONS", f"log_path={log}")
    monkeypatch.setenv("UBSAN_OPTIONS", f"log_path={log}:print_stacktrace=1")
    code, out = bench.run(workload, fast / "d", "--duration", "0.2", "--warmup", "0.02",
                          "--interval", "0.04", binary=bench.SANITIZED)  # fmt: skip
    reports = [p.read_text() for p in tmp_path.glob("sanitizer.*")]
    assert (code, out.status, out.error, reports) == (0, "ok", None, [])
    assert out.workload == workload
    assert sum(out.intervals.ops) == out.ops == sum(w.ops for w in out.workers) > 0
    assert sum(out.intervals.seconds) == pytest.approx(out.seconds)
    assert out.ops_per_second == pytest.approx(out.ops / out.seconds)
    assert out.executed_ops > out.ops
    assert out.seconds >= 0.2
    assert out.busy_cpu_seconds <= out.cpu.total + 1e-9
    assert (out.background is not None) == bench.descriptors()[workload].background
    if out.background:
        assert out.background.ops_per_second == pytest.approx(out.background.ops / out.seconds)
        assert out.background.ops > 0


@pytest.mark.parametrize(("file", "names"), [
    ("private", ["0/data", "1/data"]), ("shared", ["share"]),
])  # fmt: skip
def test_random_overwrites_take_their_share(file, names, fast):
    """Of the file system, over all workers, in files that do not grow and have no holes."""
    size = os.statvfs(fast)
    out = bench.run_good("DWRL", fast / "d", "--option", "fill=1", "--option", "age=10", "--option",
                         f"file={file}", "--duration", "0.1", count=2)  # fmt: skip
    files = [path for path in (fast / "d").rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(fast / "d")) for path in files) == names
    wanted = size.f_blocks * size.f_frsize / 100 / len(names)
    for path in files:
        assert path.stat().st_size == pytest.approx(wanted, rel=0.01)
        assert path.stat().st_blocks * 512 >= path.stat().st_size
    assert out.ops > 0


def test_counters(tmp_path, fast):
    """By how much a number in a file grew; one that cannot be read is an error."""
    counter = tmp_path / "moved"
    counter.write_text("7\n")
    process, _ = bench.start("DWOL", fast / "d", "--counter", str(counter), "--duration", "1")
    counter.write_text("12\n")  # it was read before the workers began
    code, out = bench.finish(process)
    assert (code, out.counters) == (0, {"moved": 5})
    counter.write_text("many\n")
    code, out = bench.run("DWOL", fast / "e", "--counter", str(counter), "--duration", "0.1")
    assert (code, out.status, out.error.path) == (1, "error", str(counter))


def test_cpu_time(tmp_path):
    """A worker that never sleeps is charged the whole window, its CPU as well."""
    out = bench.run_good("DRBL", tmp_path / "d", "--duration", "1")
    assert out.cpu.total == pytest.approx(out.seconds, abs=0.05)
    charged = out.workers[0].user_seconds + out.workers[0].system_seconds
    assert 0.05 < charged <= out.seconds * 1.01
    assert out.workers[0].system_seconds > out.workers[0].user_seconds
    assert charged <= out.busy_cpu_seconds + out.cpu.steal + 0.05
    assert out.cgroup_cpu_seconds is None


def test_list_is_complete():
    assert sorted(bench.descriptors()) == bench.WORKLOADS
    apart = [w for w in bench.WORKLOADS if bench.descriptors()[w].apart]
    controls = [w for w in bench.WORKLOADS if bench.descriptors()[w].control]
    assert controls == ["control_syscall", "control_user"]
    assert {w for w in apart if w.isupper()} == {"DWRL"}
    today = load_suite(SUITES / "today.toml").workloads
    primitives = [w for w in apart if w.startswith("primitive_")]
    assert {*today} == {*apart} - {"DWRL", *controls, *primitives}
    assert len([w for w in bench.WORKLOADS if not w.endswith("_bg") and w not in apart]) == 19
    assert [w for w in bench.WORKLOADS if bench.descriptors()[w].consumes] == [
        *CONSUMING,
        *COPIED_UP,
        "create_write_private",
    ]
