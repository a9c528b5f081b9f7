# SPDX-License-Identifier: GPL-2.0-only
"""The system calls of one operation are exactly those of FxMark's Table 2, or of its description.

Each worker is traced from the end of set-up on. Between the moments in which it takes and drops
the name `fscale-run`, it may make no other calls than the operation's, and it makes as many as it
says that it executed operations.
"""

import itertools
import os
import re
import shutil
import subprocess
from collections import Counter

import pytest

from tests.support import bench

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed"),
]

OPEN = r'openat\(AT_FDCWD, "{}", O_RDONLY\|O_CLOEXEC\) = \d+'
CREATE = r'openat\(AT_FDCWD, "{}", O_WRONLY\|O_CREAT\|O_EXCL\|O_CLOEXEC, 0644\) = \d+'
CLOSE = r"close\(\d+\) = 0"
TREE = "[0-7]/[0-7]/[0-7]/[0-7]/[0-7]"
# One operation of the worker with the id {id}, a pattern a call.
OPERATION = {
    "DRBL": [r"pread64\(\d+, .*, 4096, 0\) = 4096"],
    "DRBM": [r"pread64\(\d+, .*, 4096, {offset}\) = 4096"],
    "DRBH": [r"pread64\(\d+, .*, 4096, 0\) = 4096"],
    "DWOL": [r"pwrite64\(\d+, .*, 4096, 0\) = 4096"],
    "DWOM": [r"pwrite64\(\d+, .*, 4096, {offset}\) = 4096"],
    "DWAL": [r"write\(\d+, .*, 4096\) = 4096"],
    "DWTL": [r"ftruncate\(\d+, \d+\) = 0"],
    "DWSL": [r"pwrite64\(\d+, .*, 4096, 0\) = 4096", r"fsync\(\d+\) = 0"],
    "MRPL": [OPEN.format("{id}/0/0/0/0"), CLOSE],
    "MRPM": [OPEN.format(TREE), CLOSE],
    "MRPH": [OPEN.format("0/0/0/0/0"), CLOSE],
    "MWCL": [CREATE.format(r"{id}/[0-9a-f]{{8}}"), CLOSE],
    "MWCM": [CREATE.format(r"share/{id}\.[0-9a-f]{{8}}"), CLOSE],
    "MWUL": [r'unlink\("{id}/[0-9a-f]{{8}}"\) = 0'],
    "MWUM": [r'unlink\("share/{id}\.[0-9a-f]{{8}}"\) = 0'],
    "MWRL": [r'rename\("{id}/([0-9a-f]{{8}})", "{id}/\1\.2"\) = 0'],
    "MWRM": [r'rename\("{id}/([0-9a-f]{{8}})", "share/{id}\.\1"\) = 0'],
    "control_syscall": [r"umask\(077\) = 077"],
    "primitive_atomic": [r"dup\(\d+\) = \d+", CLOSE],
    "primitive_mutex": [r"ioctl\(\d+, FIONREAD, \[0\]\) = 0"],
    "primitive_rwsem_read": [r"uname\(\{{sysname=.*\}}\) = 0"],
    "primitive_rwsem_write": [r"lseek\(\d+, 0, SEEK_DATA\) = -1 ENXIO .*"],
    "primitive_spinlock": [r"fcntl\(\d+, F_SETFL, O_RDONLY\) = 0"],
}


def place(sharing, name):
    """The path of a worker's own name in a directory of its own or of all, or of all's name."""
    return {
        "private": f"{{id}}/{name}", "dir": rf"share/{name}\.{{id}}", "shared": f"share/{name}",
    }[sharing]  # fmt: skip


def today(sharing):
    """Operations of which there are several by what they share: a pattern a call."""
    file, link = place(sharing, "file"), place(sharing, "link")
    make = rf'openat\(AT_FDCWD, "{file}", O_WRONLY\|O_CREAT\|O_EXCL\|O_CLOEXEC, 0644\) = \d+'
    gone = rf'unlink\("{file}"\) = 0'
    rename = rf'rename\("{place(sharing, "new")}", "{file}"\) = 0'
    byte = r"l_whence=SEEK_SET, l_start={id}, l_len=1"
    attribute, value = rf'"{file}", "user\.fscale"', r'"0123456789abcde", 16'
    directory, missing = place(sharing, "dir"), place(sharing, "missing")
    return {
        "creat": [rf'openat\(AT_FDCWD, "{file}", O_RDWR\|O_CREAT\|O_CLOEXEC, 0644\) = \d+', CLOSE],
        "create_unlink": [make, CLOSE, gone],
        "create_fsync": [make, r"fsync\(\d+\) = 0", CLOSE, gone],
        "replace": [make.replace("file", "new"), CLOSE, rename],
        "missing": [rf'newfstatat\(AT_FDCWD, "{missing}", 0x\w+, 0\) = -1 ENOENT .*'],
        "mkdir": [rf'mkdir\("{directory}", 0755\) = 0', rf'rmdir\("{directory}"\) = 0'],
        "link": [rf'link\("{file}", "{link}"\) = 0', rf'unlink\("{link}"\) = 0'],
        "symlink": [rf'symlink\("target", "{link}"\) = 0', rf'unlink\("{link}"\) = 0'],
        "readlink": [rf'readlink\("{link}", "target", 16\) = 6'],
        "getxattr": [rf"getxattr\({attribute}, {value}\) = 16"],
        "setxattr": [rf"setxattr\({attribute}, {value}, 0\) = 0"],
        "flock": [r"flock\(\d+, LOCK_SH\) = 0", r"flock\(\d+, LOCK_UN\) = 0"],
        "fcntl_lock": [
            rf"fcntl\(\d+, F_SETLK, \{{{{l_type=F_{kind}, {byte}\}}}}\) = 0"
            for kind in ("WRLCK", "UNLCK")
        ],
        "bind_mount": [
            rf'mount\("{directory}", "{place(sharing, "mnt")}", NULL, MS_BIND, NULL\) = 0',
            rf'umount2\("{place(sharing, "mnt")}", 0\) = 0',
        ],
        "uring_write": [r"io_uring_enter\(\d+, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8\) = 1"],
    }  # fmt: skip


STAT_OPEN = r'newfstatat\(\d+, "", \{{.*\}}, AT_EMPTY_PATH\) = 0'
STATMOUNT = r"(statmount|syscall_0x1c9)\(.*\) = 0"
WRITE = r"pwrite64\(\d+, .*, 4096, 0\) = 4096"
OPERATION |= {
    f"{name}_{sharing}": calls
    for sharing in ("private", "dir", "shared")
    for name, calls in today(sharing).items()
    if f"{name}_{sharing}" in bench.WORKLOADS
}
# What stands here belongs to no table of the paper, and shares one thing alone.
OPERATION |= {
    "copy_up_private": [
        r'openat\(AT_FDCWD, "{id}/merged/[0-9a-f]{{8}}", O_WRONLY\|O_CLOEXEC\) = \d+', CLOSE,
    ],
    "copy_up_dir": [
        r'openat\(AT_FDCWD, "share/merged/{id}\.[0-9a-f]{{8}}", O_WRONLY\|O_CLOEXEC\) = \d+', CLOSE,
    ],
    "create_write_private": [
        CREATE.format("{id}/[0-9a-f]{{8}}"), r"write\(\d+, .*, 4096\) = 4096", CLOSE,
    ],
    "fallocate_private": [r"fallocate\(\d+, 0, 0, 4096\) = 0", r"ftruncate\(\d+, 0\) = 0"],
    "fstat_shared": [STAT_OPEN],
    "fuse_getattr_dir": [STAT_OPEN],
    "fuse_getattr_private": [STAT_OPEN],
    "link_shared": [
        r'link\("share/file", "{id}/link"\) = 0', r'unlink\("{id}/link"\) = 0',
    ],
    "stat_shared": [
        r'newfstatat\(AT_FDCWD, "share/file-of-all-workers", \{{.*\}}, 0\) = 0',
    ],
    "statmount_shared": [STATMOUNT],
    "syncfs_private": [WRITE, r"syncfs\(\d+\) = 0"],
    "tmpfile_private": [
        r'openat\(AT_FDCWD, "{id}/", O_RDWR\|O_CLOEXEC\|O_TMPFILE, 0600\) = \d+', CLOSE,
    ],
    "whiteout_private": [
        r'unlink\("{id}/merged/00000000"\) = 0', CREATE.format("{id}/merged/00000000"), CLOSE,
    ],
    "whiteout_dir": [
        r'unlink\("share/merged/{id}.00000000"\) = 0',
        CREATE.format(r"share/merged/{id}\.00000000"),
        CLOSE,
    ],
    "write_stat_private": [WRITE, STAT_OPEN],
}  # fmt: skip
# Operations that go to and fro, and such as make a call only now and then.
RENAMED = ("rename_private", "rename_dir")
FAULTS = ("fault_private", "fault_shared")
# One operation of the writer beside one reader, a pattern a call.
BACKGROUND = {
    "DRBL_bg": [r"pwrite64\(\d+, .*, 4096, 0\) = 4096"],
    "DRBM_bg": [r"pwrite64\(\d+, .*, 4096, 0\) = 4096"],
    "DRBH_bg": [r"pwrite64\(\d+, .*, 4096, 0\) = 4096"],
    "MRDL_bg": [r'rename\("0/[0-9a-f]{8}(\.2)?", "0/[0-9a-f]{8}(\.2)?"\) = 0'],
    "MRDM_bg": [r'rename\("share/[0-9a-f]{8}(\.2)?", "share/[0-9a-f]{8}(\.2)?"\) = 0'],
    "MRPM_bg": [rf'renameat2\(AT_FDCWD, "{TREE}", AT_FDCWD, "{TREE}", RENAME_EXCHANGE\) = 0'],
    "statmount_shared_bg": [
        r'mount\("1/dir", "1/mnt", NULL, MS_BIND, NULL\) = 0',
        r'umount2\("1/mnt", 0\) = 0',
    ],
}
COMPUTED = "control_user"  # it makes no calls
TOUCHES_NO_FILE = [w for w in bench.WORKLOADS if w.startswith(("control_", "primitive_"))]
READDIR = ("MRDL", "MRDM")
RANDOM = "DWRL"  # not of the table: its calls are those of a random overwrite
# Under strace, and beside other tests, a worker may have a CPU for few operations of its window.
FEW = 5
QUICK = ("--duration", "0.3", "--warmup", "0.02", "--max-stock", "1500", "--min-window", "0.001")


def trace(workload, directory, logs, *more):
    """Run with strace attached after set-up; the output and each worker's calls, by id."""

    def attempt(*given):
        return try_trace(workload, directory, logs, *given)

    code, out, calls = bench.retry_longer(attempt, directory, more, few=FEW)
    assert (code, out.status) == (0, "ok"), out.reason
    return out, calls


def try_trace(workload, directory, logs, *more):
    """The same, with the exit code."""
    process, told, ask = bench.start_held(workload, directory, *more)
    told.close()
    workers = bench.children(process.pid)
    assert {bench.comm(p) for p in workers} == {"fscale-set"}
    workers += [child for pid in workers for child in bench.children(pid)]
    strace = ["strace", "-ff", "-a0", "-s64", "-o", str(logs / "calls")]
    for pid in workers:
        strace += ["-p", str(pid)]
    tracer = subprocess.Popen(strace, stderr=subprocess.PIPE, text=True)
    for _ in workers:
        assert "attached" in tracer.stderr.readline()
    os.write(ask, b"x")
    os.close(ask)
    code, out = bench.finish(process)
    tracer.stderr.read()
    tracer.wait()
    return code, out, [(logs / f"calls.{pid}").read_text().splitlines() for pid in workers]


def named(calls, name):
    """The calls that were made under a name."""
    inside, found, times = False, [], 0
    for call in calls:
        if call.startswith("prctl(PR_SET_NAME"):
            inside = f'"{name}"' in call
            times += inside
        elif inside:
            found.append(call)
    assert times, f"never bore the name {name}"
    return found


def check_operations(calls, patterns):
    """The calls are whole operations, one after the other; returns how many."""
    for number, call in enumerate(calls):
        assert re.fullmatch(patterns[number % len(patterns)], call), call
    assert len(calls) % len(patterns) == 0
    return len(calls) // len(patterns)


def filled(patterns, worker):
    return [p.format(id=worker, offset=worker * 4096) for p in patterns]


@pytest.mark.parametrize("workload", bench.parameters(sorted(OPERATION)))
def test_calls(workload, fast, tmp_path):
    out, workers = trace(workload, fast / "d", tmp_path, *QUICK)
    executed = check_operations(named(workers[0], "fscale-run"), filled(OPERATION[workload], 0))
    assert executed == out.executed_ops >= out.ops > FEW


@bench.needs_root
def test_each_stat_of_fuse_is_a_request(tmp_path):
    """The answer has a header of 16 bytes and the attributes of 104; nothing else is asked for."""
    workload = "fuse_getattr_private"
    out, (worker, answering) = trace(workload, tmp_path / "d", tmp_path, *QUICK)
    asked = check_operations(named(worker, "fscale-run"), [STAT_OPEN.format()])
    answers = [call for call in answering if call.startswith("write(")]
    assert all(re.fullmatch(r"write\(3, .*, 120\) += 120", call) for call in answers)
    assert len(answers) == asked == out.executed_ops > FEW


def test_the_control_in_user_space_makes_no_calls(tmp_path):
    out, workers = trace(COMPUTED, tmp_path / "d", tmp_path, *QUICK)
    assert named(workers[0], "fscale-run") == []
    assert out.executed_ops >= out.ops > FEW


@pytest.mark.parametrize("workload", TOUCHES_NO_FILE)
def test_what_touches_no_file_leaves_nothing_behind(workload, tmp_path):
    bench.run_good(workload, tmp_path / "d", *QUICK)
    assert list((tmp_path / "d").iterdir()) == []


MAKES_NAME = (
    re.compile(r'openat\(AT_FDCWD, "([^"]+)", [^)]*O_CREAT'),
    re.compile(r'rename\("[^"]+", "([^"]+)"\)'),
)


@pytest.mark.parametrize(("workload", "option"), [
    ("MWCL", ()), ("MWCM", ()), ("MWUL", ()), ("MWUM", ()), ("MWRM", ()), ("MWRL", ()),
    ("MWRL", ("--option", "files=one")),
])  # fmt: skip
def test_no_name_is_used_twice(workload, option, tmp_path):
    """Nor by a restock: a name that was there once may have a negative dentry."""
    for stock in ("300", "100", "1000"):  # small enough to restock, large enough for a window
        logs = tmp_path / stock
        logs.mkdir()
        bounds = ("--max-stock", stock, "--duration", "0.5")
        code, out, (calls,) = try_trace(workload, logs / "d", logs, *QUICK, *bounds, *option)
        if code == 0 and out.stock.restocks:
            break
    assert (code, out.status) == (0, "ok"), out.reason
    assert out.stock.restocks > 0
    made = Counter(m[1] for call in calls for p in MAKES_NAME if (m := p.match(call)))
    assert len(made) >= out.executed_ops // 2
    assert [name for name, times in made.items() if times > 1] == []


UNLINK = r'unlink\("{}"\) = 0'


@pytest.mark.parametrize("workload", ["MWCL", "MWCM", "MWUL", "MWUM"])
def test_calls_of_a_steady_state(workload, tmp_path):
    name = {"L": "0/[0-9a-f]{8}", "M": r"share/0\.[0-9a-f]{8}"}[workload[-1]]
    create, unlink = [CREATE.format(name), CLOSE], [UNLINK.format(name)]
    out, workers = trace(workload, tmp_path / "d", tmp_path, *QUICK, "--option", "keep=20")
    calls = named(workers[0], "fscale-run")
    patterns = [*create, *unlink] if workload.startswith("MWC") else [*unlink, *create]
    assert check_operations(calls, patterns) == out.executed_ops > FEW
    made = [m[1] for call in calls if (m := MAKES_NAME[0].match(call))]
    gone = [re.match(r'unlink\("([^"]+)"', call)[1] for call in calls if call.startswith("unlink")]
    assert len(set(made)) == len(made)
    # The oldest goes: the one that was made 20 files before.
    assert gone[20:] == made[: len(gone) - 20]


def test_appends_of_a_steady_state(tmp_path):
    out, workers = trace(
        "DWAL", tmp_path / "d", tmp_path, *QUICK, "--duration", "1", "--option", "keep=300"
    )
    calls = named(workers[0], "fscale-run")
    punched = [call for call in calls if call.startswith("fallocate")]
    wrote = [call for call in calls if not call.startswith("fallocate")]
    assert check_operations(wrote, OPERATION["DWAL"]) == out.executed_ops > 600
    size = 256 * 4096
    for number, call in enumerate(punched):
        mode = r"FALLOC_FL_KEEP_SIZE\|FALLOC_FL_PUNCH_HOLE"
        assert re.fullmatch(rf"fallocate\(\d+, {mode}, {number * size}, {size}\) = 0", call)
    assert len(punched) == pytest.approx(out.executed_ops / 256, abs=1)


def test_one_file_is_renamed(tmp_path):
    out, workers = trace("MWRL", tmp_path / "d", tmp_path, *QUICK, "--option", "files=one")
    name = "0/[0-9a-f]{8}"
    calls = named(workers[0], "fscale-run")
    pattern = rf'rename\("({name})", "({name})"\) = 0'
    assert check_operations(calls, [pattern]) == out.executed_ops
    renames = [re.fullmatch(pattern, call).groups() for call in calls]
    assert all(old == new for (_, old), (new, _) in itertools.pairwise(renames))


@pytest.mark.parametrize("workload", ["DRBM", "DWOM", "MWRM", "MWCM"])
def test_calls_of_two(workload, tmp_path):
    two = ",".join(map(str, bench.cpus(2)))
    out, workers = trace(workload, tmp_path / "d", tmp_path, *QUICK, "--cpus", two)
    executed = [
        check_operations(named(calls, "fscale-run"), filled(OPERATION[workload], worker))
        for worker, calls in enumerate(workers)
    ]
    assert sum(executed) == out.executed_ops


@pytest.mark.parametrize("workload", ["MRPL", "MRPM", "MRPH"])
def test_stat_variant(workload, tmp_path):
    out, workers = trace(workload, tmp_path / "d", tmp_path, *QUICK, "--option", "access=stat")
    path = {"MRPL": "0/0/0/0/0", "MRPH": "0/0/0/0/0", "MRPM": TREE}[workload]
    pattern = rf'newfstatat\(AT_FDCWD, "{path}", \{{.*\}}, 0\) = 0'
    assert check_operations(named(workers[0], "fscale-run"), [pattern]) == out.executed_ops
    assert out.options == {"access": "stat"}


def check_readdir(calls, executed, entries):
    """Every pass returns the whole directory, then comes its end, which is no operation."""
    passes, returned, total = [], 0, 0
    for call in calls:
        got = re.fullmatch(r"getdents64\(\d+, 0x\w+ /\* (\d+) entries \*/, \d+\) = \d+", call)
        if got:
            returned += int(got[1])
            total += int(got[1])
            largest = int(got[1])
            if got[1] == "0":
                passes.append(returned)
                returned = 0
        else:
            assert re.fullmatch(r"lseek\(\d+, 0, SEEK_SET\) = 0", call), call
    assert len(passes) > 2
    assert set(passes) == {entries + 2}
    assert Counter(c.split("(")[0] for c in calls)["lseek"] == len(passes)
    assert 0 <= total - executed <= max(largest, entries + 2)


@pytest.mark.parametrize("workload", READDIR)
def test_readdir(workload, tmp_path):
    out, workers = trace(workload, tmp_path / "d", tmp_path, *QUICK, "--option", "entries=1500")
    check_readdir(named(workers[0], "fscale-run"), out.executed_ops, 1500)


@pytest.mark.parametrize("workload", bench.parameters(sorted(BACKGROUND)))
def test_background(workload, tmp_path):
    out, (reader, writer) = trace(workload, tmp_path / "d", tmp_path, *QUICK)
    calls = named(reader, "fscale-run")
    plain = workload.removesuffix("_bg")
    if plain in READDIR:
        assert {c.split("(")[0] for c in calls} == {"getdents64", "lseek"}
    else:
        assert check_operations(calls, filled(OPERATION[plain], 0)) == out.executed_ops
    written = check_operations(named(writer, "fscale-bg"), BACKGROUND[workload])
    assert written >= out.background.ops > 0
    assert not any("fscale-run" in call for call in writer)
    assert out.background.cpu == out.cpus[-1]
    assert len(out.workers) == len(out.cpus) - 1


def test_random_overwrites(tmp_path):
    """Of all blocks of the file's 1 MiB, in no order, and each fourth is followed by an fsync."""
    out, workers = trace(RANDOM, tmp_path / "d", tmp_path, *QUICK, "--option", "sync=4")
    blocks = []
    for number, call in enumerate(named(workers[0], "fscale-run")):
        if number % 5 == 4:
            assert re.fullmatch(r"fsync\(\d+\) = 0", call), call
            continue
        write = re.fullmatch(r"pwrite64\(\d+, .*, 4096, (\d+)\) = 4096", call)
        assert write, call
        blocks.append(int(write[1]) / 4096)
    assert len(blocks) == out.executed_ops > FEW
    assert set(blocks) <= set(range(256))
    assert len(set(blocks)) > min(100, len(blocks) // 2)
    assert blocks != sorted(blocks)


@pytest.mark.parametrize("mode", ["direct", "dontcache"])
@pytest.mark.parametrize("workload", ["DRBL", "DRBM", "DWOL", "DWAL", "DWSL", "DWTL"])
def test_modes(workload, mode, tmp_path):
    code, out = bench.run(workload, tmp_path / "probe", *QUICK, "--mode", mode)
    if code == 77:
        pytest.skip(f"{out.error.call}: {out.error.name} here")
    out, workers = trace(workload, tmp_path / "d", tmp_path, *QUICK, "--mode", mode)
    calls = named(workers[0], "fscale-run")
    if mode == "direct" or workload == "DWTL":
        assert check_operations(calls, filled(OPERATION[workload], 0)) == out.executed_ops
        return
    call, offset = ("preadv2", 0) if workload.startswith("DR") else ("pwritev2", 0)
    offset = -1 if workload == "DWAL" else offset
    flag = r"(RWF_DONTCACHE|0x80.*)"
    patterns = [rf"{call}\(\d+, \[\{{.*iov_len=4096\}}\], 1, {offset}, {flag}\) = 4096"]
    patterns += OPERATION[workload][1:]
    assert check_operations(calls, patterns) == out.executed_ops


@pytest.mark.parametrize("workload", RENAMED)
def test_a_file_is_renamed_there_and_back(workload, tmp_path):
    out, workers = trace(workload, tmp_path / "d", tmp_path, *QUICK)
    sharing = workload.removeprefix("rename_")
    names = [place(sharing, name).format(id=0) for name in ("file", "other")]
    calls = named(workers[0], "fscale-run")
    ways = [rf'rename\("{a}", "{b}"\) = 0' for a, b in (names, names[::-1])]
    began = 0 if re.fullmatch(ways[0], calls[0]) else 1  # a window begins under either name
    for number, call in enumerate(calls, began):
        assert re.fullmatch(ways[number % 2], call), call
    assert len(calls) == out.executed_ops > FEW


@pytest.mark.parametrize("workload", FAULTS)
def test_pages_are_mapped_anew_after_the_last(workload, tmp_path):
    out, workers = trace(workload, tmp_path / "d", tmp_path, *QUICK, "--option", "pages=16")
    size = 16 * os.sysconf("SC_PAGESIZE")
    again = [
        rf"munmap\(0x\w+, {size}\) = 0",
        rf"mmap\(NULL, {size}, PROT_READ\|PROT_WRITE, MAP_SHARED, \d+, 0\) = 0x\w+",
    ]
    times = check_operations(named(workers[0], "fscale-run"), again)
    # What the warm-up of the pilot left open is mapped anew in the window.
    assert times == pytest.approx(out.executed_ops / 16, abs=1)
    assert out.executed_ops > 16 * FEW


def test_requests_in_flight_lie_side_by_side(tmp_path):
    argv = (*QUICK, "--option", "depth=4")
    out, workers = trace("uring_write_shared", tmp_path / "d", tmp_path, *argv)
    calls = named(workers[0], "fscale-run")
    assert re.fullmatch(r"io_uring_enter\(\d+, [1-4], 1, .*\) = [1-4]", calls[0])
    assert check_operations(calls[1:], OPERATION["uring_write_shared"]) == out.executed_ops - 1
    assert (tmp_path / "d/share/file").stat().st_size == 4 * 4096


def test_every_workload_is_traced():
    traced = {*OPERATION, *BACKGROUND, *READDIR, *RENAMED, *FAULTS, RANDOM, COMPUTED}
    assert traced == set(bench.descriptors())
