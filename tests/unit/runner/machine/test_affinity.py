# SPDX-License-Identifier: GPL-2.0-only
"""What is bound to CPUs that go offline, on a made-up /proc and made-up cpusets of cgroup v1."""

import errno
import os
from pathlib import Path

import pytest

from fscale.runner.machine import affinity
from fscale.runner.machine.affinity import Affinity
from fscale.runner.machine.journal import Journal, recover
from fscale.system import cgroups
from fscale.system.executor import Executor
from tests.support.files import write_files

KERNEL_BINDS = 0x04000000


class Kernel(Executor):
    """Writes to the tree, and binds threads there."""

    def __init__(self, proc: Path) -> None:
        super().__init__()
        self.proc = proc
        self.refuses: set[int] = set()

    def bind(self, tid: int, cpus: list[int]) -> None:
        """See Executor."""
        if tid in self.refuses:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self.widen(tid, ",".join(map(str, cpus)))

    def widen(self, tid: int, cpus: str) -> None:
        """Let a thread use other CPUs."""
        (self.proc / str(tid) / "status").write_text(f"Name:\tx\nCpus_allowed_list:\t{cpus}\n")

    def thread(self, tid: int, cpus: str, flags: int = 0, started: int = 7) -> None:
        """Start a thread."""
        stat = f"{tid} (a) b) S 1 1 1 0 -1 {flags} " + "0 " * 12 + f"{started} 0\n"
        write_files(self.proc, {f"{tid}/stat": stat, f"{tid}/comm": "daemon\n"})
        (self.proc / str(tid) / "task" / str(tid)).mkdir(parents=True, exist_ok=True)
        self.widen(tid, cpus)

    def cpus(self, tid: int) -> str:
        """Return the CPUs that a thread may use."""
        return (self.proc / str(tid) / "status").read_text().split()[-1]

    def interrupt(self, number: int) -> str:
        """Return the CPUs that an interrupt is bound to."""
        return (self.proc / "irq" / str(number) / "smp_affinity_list").read_text().strip()


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    proc = tmp_path / "proc"
    monkeypatch.setattr(affinity, "PROC", proc)
    monkeypatch.setattr(affinity, "_INTERRUPTS", proc / "irq")
    monkeypatch.setattr(affinity, "_PATIENCE", 0)
    monkeypatch.setattr(cgroups, "mount_point", lambda _: tmp_path / "cpuset")
    made = Kernel(proc)
    made.thread(10, "1")
    made.thread(11, "0-3")
    made.thread(12, "1", flags=KERNEL_BINDS)
    made.thread(13, "2-3")
    for number, cpus in {24: "1", 25: "0-1", 26: ""}.items():
        write_files(proc, {f"irq/{number}/smp_affinity_list": f"{cpus}\n"})
    write_files(
        tmp_path / "cpuset",
        {
            "cpuset.cpus": "0-3\n", "tasks": "11\n",
            "whole/cpuset.cpus": "1\n", "whole/tasks": "10\n",
            "part/cpuset.cpus": "0-1\n", "part/tasks": "13\n",
            "other/cpuset.cpus": "0\n", "other/tasks": "",
        },
    )  # fmt: skip
    return made


def test_what_loses_its_last_cpu_is_found(kernel: Kernel, tmp_path: Path) -> None:
    found = affinity.find({0, 1, 2, 3}, {0, 2, 3})
    assert [(one.tid, one.cpus, one.name) for one in found.threads] == [(10, [1], "daemon")]
    assert found.interrupts == {24: [1]}
    sets = {one.path.relative_to(tmp_path): [t.tid for t in one.threads] for one in found.cpusets}
    assert sets == {Path("cpuset/whole"): [10], Path("cpuset/part"): []}
    # CPU 3 is offline already, and counts in a thread's mask.
    assert [one.cpus for one in affinity.find({0, 1, 2}, {0}).threads] == [[1], [2, 3]]
    assert not affinity.find({0, 1}, {0, 1})


@pytest.mark.parametrize("listing", ["scandir", "listdir"])  # either may be that of pathlib
def test_a_process_that_ends_meanwhile_is_none(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, listing: str
) -> None:
    kernel.thread(9, "1")
    before = getattr(os, listing)

    def ended(path: str | Path = ".") -> object:
        if Path(path) == kernel.proc / "9" / "task":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return before(path)

    monkeypatch.setattr(os, listing, ended)
    assert 10 in {one.tid for one in affinity.find({0, 1, 2, 3}, {0, 2, 3}).threads}


def hotplug(kernel: Kernel, tmp_path: Path) -> None:
    """What Linux does to the bindings when CPU 1 goes offline."""
    kernel.widen(10, "0-3")
    write_files(kernel.proc, {"irq/24/smp_affinity_list": "0-3\n"})
    cpuset = {"whole/cpuset.cpus": "\n", "whole/tasks": "", "part/cpuset.cpus": "0\n"}
    write_files(tmp_path / "cpuset", cpuset | {"tasks": "11\n10\n"})


def test_a_killed_run_leaves_them_to_be_restored(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal", kernel)
    journal.apply(affinity.find({0, 1, 2, 3}, {0, 2, 3}))
    hotplug(kernel, tmp_path)
    journal.close()  # as if killed here
    monkeypatch.setattr(Executor, "bind", lambda _, tid, cpus: kernel.bind(tid, cpus))
    undone, failures = recover(tmp_path)
    assert (len(undone), failures) == (1, [])
    assert (kernel.cpus(10), kernel.interrupt(24), kernel.interrupt(25)) == ("1", "1", "0-1")
    whole, part = tmp_path / "cpuset" / "whole", tmp_path / "cpuset" / "part"
    assert [(one / "cpuset.cpus").read_text() for one in (whole, part)] == ["1", "0-1"]
    assert (whole / "tasks").read_text() == "10"


def test_what_somebody_else_changed_stays(kernel: Kernel) -> None:
    found = affinity.find({0, 1}, {0})
    kernel.widen(10, "0")
    found.undo(kernel)
    assert kernel.cpus(10) == "0"
    kernel.thread(10, "0-3", started=8)  # another thread has the number now
    found.undo(kernel)
    assert (kernel.cpus(10), found.unrestored) == ("0-3", [])


def test_what_cannot_be_restored_is_a_warning(kernel: Kernel, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", kernel)
    journal.apply(affinity.find({0, 1}, {0}))
    kernel.widen(10, "0-3")
    kernel.refuses = {10}
    assert journal.undo_all() == []
    assert journal.warnings == [
        "thread 10 (daemon) was bound to CPUs 1 before they went offline, and cannot be bound to "
        "them again (Invalid argument); bind it, or restart what it belongs to"
    ]
    assert not (tmp_path / "journal").exists()


def test_only_what_is_new_is_recorded(kernel: Kernel) -> None:
    first = affinity.find({0, 1}, {0})
    assert not affinity.find({0, 1}, {0}).without([first])
    kernel.thread(14, "1")
    assert [one.tid for one in affinity.find({0, 1}, {0}).without([first]).threads] == [14]
    assert first.within({0}) == Affinity()
    assert first.within({0, 1}) == first
