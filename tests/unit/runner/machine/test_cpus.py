# SPDX-License-Identifier: GPL-2.0-only
"""Taking CPUs off line on a made-up /sys/devices/system/cpu whose kernel refuses to."""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fscale.model.errors import FscaleError
from fscale.model.results import CpuControl
from fscale.runner.machine import changes, host
from fscale.runner.machine.host import Cpus, HotplugRefused
from fscale.runner.machine.journal import Journal, recover
from fscale.system import powers
from fscale.system.executor import Executor
from tests.support.synthetic import machine

COUNT = 4
ALWAYS = 10**9


class Kernel(Executor):
    """Refuses `refusals[cpu, value]` writes with an errno, then obeys."""

    def __init__(self, tree: Path) -> None:
        super().__init__()
        self.tree = tree
        self.refusals: Counter[tuple[int, str]] = Counter()
        self.errno = errno.EBUSY

    def write(self, path: Path, text: str) -> None:
        """See Executor."""
        cpu = int(path.parent.name[3:])
        if self.refusals[cpu, text] > 0:
            self.refusals[cpu, text] -= 1
            raise OSError(self.errno, os.strerror(self.errno), str(path))
        super().write(path, text)

    @property
    def online(self) -> list[int]:
        """CPU 0 cannot be taken off."""
        return [0] + [n for n in range(1, COUNT) if self.file(n).read_text().strip() == "1"]

    def file(self, cpu: int) -> Path:
        """Of the tree."""
        return self.tree / f"cpu{cpu}" / "online"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    tree = tmp_path / "cpu"
    (tree / "cpu0").mkdir(parents=True)
    for cpu in range(1, COUNT):
        (tree / f"cpu{cpu}").mkdir()
        (tree / f"cpu{cpu}" / "online").write_text("1\n")
    for module in (host, changes):
        monkeypatch.setattr(module, "CPUS", tree)
    monkeypatch.setattr(powers, "no_hotplug", lambda: None)
    monkeypatch.setattr(host, "PATIENCE", 0.3)
    monkeypatch.setattr(host, "PATIENCE_AFTERWARDS", 0.05)
    monkeypatch.setattr(changes, "_BUSY", 0.3)
    yield Kernel(tree)


@pytest.fixture
def begun(kernel: Kernel, tmp_path: Path) -> Callable[..., Cpus]:
    def begin(measured_by: CpuControl | None = None, fewest: int = 1) -> Cpus:
        cpus = Cpus(machine(COUNT), Journal(tmp_path / "journal", kernel), measured_by)
        cpus.settle(fewest)
        return cpus

    return begin


Begun = Callable[..., Cpus]


@pytest.mark.parametrize("number", [errno.EBUSY, errno.ERANGE, errno.ENOSPC, errno.EPERM])
def test_what_is_refused_for_a_while_is_tried_again(
    begun: Begun, kernel: Kernel, number: int
) -> None:
    cpus = begun()
    kernel.errno = number
    kernel.refusals[2, "0"] = 2
    assert cpus.select(1) == [0]
    assert kernel.online == [0]
    assert cpus.control == "hotplug"
    (said,) = cpus.warnings
    assert "CPU 2" in said
    assert os.strerror(number) in said
    cpus.all()
    assert kernel.online == [0, 1, 2, 3]


@pytest.mark.parametrize("cpu", [1, 2, 3])
def test_a_run_that_has_begun_does_not_change_over(begun: Begun, kernel: Kernel, cpu: int) -> None:
    cpus = begun()
    kernel.refusals[cpu, "0"] = ALWAYS
    with pytest.raises(HotplugRefused, match=f"CPU {cpu} offline"):
        cpus.select(1)
    # What needs nothing of that CPU goes on, in the same way.
    assert cpus.select(cpu + 1) == list(range(cpu + 1))
    assert kernel.online == list(range(cpu + 1))
    kernel.refusals.clear()
    cpus.select(1)
    assert kernel.online == [0]
    assert cpus.control == "hotplug"
    assert len(cpus.warnings) == 1
    cpus.all()
    assert kernel.online == [0, 1, 2, 3]


def test_a_kernel_that_refuses_from_the_first_makes_a_run_by_affinity(
    begun: Begun, kernel: Kernel
) -> None:
    kernel.refusals[2, "0"] = ALWAYS
    cpus = begun()
    assert cpus.control == "affinity"
    assert kernel.online == [0, 1, 2, 3]
    assert "CPU 2" in "".join(cpus.warnings)
    kernel.refusals.clear()
    assert cpus.select(1) == [0]
    assert (cpus.control, kernel.online) == ("affinity", [0, 1, 2, 3])


def test_only_what_the_smallest_cell_needs_is_tried(begun: Begun, kernel: Kernel) -> None:
    kernel.refusals[1, "0"] = ALWAYS
    assert begun(fewest=2).control == "hotplug"
    assert begun(fewest=COUNT).control == "hotplug"
    assert begun(fewest=1).control == "affinity"


def test_a_cpu_that_does_not_come_back(begun: Begun, kernel: Kernel) -> None:
    cpus = begun()
    cpus.select(1)
    kernel.refusals[2, "1"] = 1
    cpus.select(3)
    assert kernel.online == [0, 1, 2]
    cpus.select(1)
    kernel.refusals[1, "1"] = ALWAYS
    with pytest.raises(HotplugRefused, match="CPU 1 online"):
        cpus.select(2)
    with pytest.raises(HotplugRefused, match="CPU 1 online"):
        cpus.all()
    cpus.select(1)
    kernel.refusals.clear()
    cpus.select(3)
    assert kernel.online == [0, 1, 2]


def test_a_refused_cpu_is_put_back_by_the_journal(
    begun: Begun, kernel: Kernel, tmp_path: Path
) -> None:
    cpus = begun()
    kernel.refusals[3, "0"] = ALWAYS
    with pytest.raises(HotplugRefused):
        cpus.select(1)
    assert kernel.online == [0, 3]
    assert recover(tmp_path)[1] == []
    assert kernel.online == [0, 1, 2, 3]


def test_a_resumed_run_keeps_its_control(begun: Begun, kernel: Kernel) -> None:
    assert begun("hotplug").control == "hotplug"
    assert begun("affinity").control == "affinity"
    kernel.refusals[1, "0"] = ALWAYS
    with pytest.raises(HotplugRefused, match="another --output"):
        begun("hotplug")


def test_cells_by_hotplug_are_not_gone_on_with_by_affinity(
    begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(powers, "no_hotplug", lambda: "it needs root")
    with pytest.raises(FscaleError, match="another --output"):
        begun("hotplug")
    assert begun().control == "affinity"


def test_a_cpuset_that_shrinks_is_seen(begun: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container manager gives CPUs of a shared pool to another container."""
    allowed = {0, 1, 2}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(allowed))
    cpus = begun("affinity")
    cpus.select(2)
    allowed.remove(2)
    assert cpus.changed() is None
    allowed.remove(1)
    assert "CPUs 1 were taken" in (cpus.changed() or "")


@pytest.mark.parametrize("control", [None, "affinity"])
def test_what_others_switch_is_seen(
    begun: Begun, kernel: Kernel, control: CpuControl | None
) -> None:
    cpus = begun(control)
    cpus.select(2)
    assert cpus.changed() is None
    kernel.file(1).write_text("0\n")
    assert "CPUs 1 are offline" in (cpus.changed() or "")
    with pytest.raises(FscaleError, match="CPUs 1 are offline"):
        cpus.select(2)
    kernel.file(1).write_text("1\n")
    cpus.select(2)
    kernel.file(3).write_text("0\n" if control else "1\n")
    assert "CPUs 3 are o" in (cpus.changed() or "")
    if control is None:
        cpus.select(2)  # it is taken off again
        assert kernel.online == [0, 1]
