# SPDX-License-Identifier: GPL-2.0-only
"""Limits of control groups, from made-up hierarchies of both versions and in containers."""

import os
import shutil
from pathlib import Path

import pytest

from fscale.model.load import Outcome
from fscale.runner.machine import confinement, hiddenquota, host
from fscale.system import cgroups, namespaces
from fscale.system.cgroups import Limit
from tests.support import synthetic
from tests.support.files import write_files

MIB = 1 << 20
US = f"{os.getpid()}\n"
V2 = "30 1 0:30 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
V1 = "31 1 0:31 {root} /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}\n"


def v2(root: Path, groups: dict[str, dict[str, str]], **how: str) -> Path:
    """A hierarchy of v2 whose last group is ours; the root has no cgroup.type."""
    files = {
        "proc/self/mountinfo": V2.format(root=how.get("mount_root", "/")),
        "proc/self/cgroup": f"0::{how.get('own', list(groups)[-1])}\n",
    }
    for path, content in groups.items():
        base = f"sys/fs/cgroup{path.rstrip('/')}"
        ours = path == list(groups)[-1]
        files[f"{base}/cgroup.procs"] = US if ours else "1\n"
        if path != "/" or "top_hidden" in how:
            files[f"{base}/cgroup.type"] = "domain\n"
        files |= {f"{base}/{name}": text for name, text in content.items()}
    return write_files(root, files)


def test_the_smallest_limit_of_all_ancestors_counts(tmp_path: Path) -> None:
    root = v2(
        tmp_path,
        {
            "/": {},
            "/user.slice": {"cpu.max": "150000 100000\n", "memory.max": "1073741824\n"},
            "/user.slice/a.scope": {
                "cpu.max": "max 100000\n",
                "memory.max": "max\n",
                "memory.swap.max": "0\n",
            },
        },
    )
    top = tmp_path / "sys/fs/cgroup"
    found = cgroups.chain("cpu", root)
    assert found is not None
    assert found.groups == (top / "user.slice/a.scope", top / "user.slice", top)
    assert (found.version, found.whole) == (2, True)
    assert cgroups.cpu_quota(found) == Limit(1.5, top / "user.slice/cpu.max")
    assert cgroups.memory_limit(found) == Limit(1 << 30, top / "user.slice/memory.max")
    assert cgroups.swap_limit(found) == Limit(0, top / "user.slice/a.scope/memory.swap.max")
    read = confinement.read(root)
    assert (read.cpus, read.memory_bytes, read.swap_bytes) == (1.5, 1 << 30, 0)
    assert read.cgroups == "v2"


@pytest.mark.parametrize(
    ("files", "cpus", "memory"),
    [
        ({}, None, None),
        ({"cpu.max": "max 100000\n", "memory.max": "max\n"}, None, None),
        ({"cpu.max": "50000 100000\n"}, 0.5, None),
        ({"cpu.max": "300000 100000\n", "memory.high": f"{300 * MIB}\n"}, 3.0, 300 * MIB),
    ],
)
def test_limits_of_v2(
    tmp_path: Path, files: dict[str, str], cpus: float | None, memory: int | None
) -> None:
    read = confinement.read(v2(tmp_path, {"/": {}, "/own": files}))
    assert (read.cpus, read.memory_bytes) == (cpus, memory)


def test_what_is_left_below_a_limit_is_without_the_page_cache(tmp_path: Path) -> None:
    root = v2(
        tmp_path,
        {
            "/": {},
            "/own": {
                "memory.max": f"{512 * MIB}\n",
                "memory.current": f"{300 * MIB}\n",
                # shmem is in `file`, and cannot be given up without swap.
                "memory.stat": f"file {250 * MIB}\nshmem {50 * MIB}\n"
                f"inactive_file {150 * MIB}\nactive_file {50 * MIB}\n",
            },
        },
    )
    left = cgroups.memory_left(cgroups.chain("memory", root))
    assert left is not None
    assert left.value == 412 * MIB


def test_settings_that_change_figures(tmp_path: Path) -> None:
    files = {
        "/": {},
        "/own": {
            "io.max": "8:0 rbps=1048576\n8:16 wiops=9\n",
            "io.latency": "\n",
            "io.prio.class": "restrict-to-be\n",
            "cpu.weight": "100\n",
        },
    }
    assert cgroups.settings(v2(tmp_path, files)) == {
        "io.max": "8:0 rbps=1048576; 8:16 wiops=9",
        "io.prio.class": "restrict-to-be",
    }


def v1(root: Path, own: str, mount_root: str, files: dict[str, str]) -> Path:
    text = "".join(V1.format(root=mount_root, name=name) for name in ("cpu", "memory"))
    write_files(
        root, {"proc/self/mountinfo": text, "proc/self/cgroup": f"2:cpu:{own}\n3:memory:{own}\n"}
    )
    return write_files(root / "sys/fs/cgroup", files)


def test_limits_of_v1(tmp_path: Path) -> None:
    v1(
        tmp_path,
        "/a/b",
        "/",
        {
            "cpu/release_agent": "",
            "cpu/a/cpu.cfs_quota_us": "200000\n",
            "cpu/a/cpu.cfs_period_us": "50000\n",
            "cpu/a/b/cpu.cfs_quota_us": "-1\n",
            "cpu/a/b/cpu.cfs_period_us": "100000\n",
            "cpu/a/b/cgroup.procs": US,
            "cpu/a/cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_time 2500000000\n",
            "memory/release_agent": "",
            "memory/memory.limit_in_bytes": "9223372036854771712\n",
            "memory/a/b/memory.limit_in_bytes": f"{700 * MIB}\n",
            "memory/a/b/memory.usage_in_bytes": f"{90 * MIB}\n",
            "memory/a/b/memory.stat": f"total_inactive_file {40 * MIB}\ninactive_file 0\n",
            "memory/a/b/cgroup.procs": US,
        },
    )
    read = confinement.read(tmp_path)
    assert (read.cgroups, read.cpus, read.memory_bytes) == ("v1", 4.0, 700 * MIB)
    left = cgroups.memory_left(cgroups.chain("memory", tmp_path))
    assert left is not None
    assert left.value == 650 * MIB
    counted = cgroups.throttled(cgroups.chain("cpu", tmp_path))
    assert counted == {tmp_path / "sys/fs/cgroup/cpu/a": cgroups.Throttled(4, 2.5)}


def test_v1_in_a_container_tells_the_limit_that_is_hidden(tmp_path: Path) -> None:
    # As docker binds its own group: the path of /proc/self/cgroup is not below the mount's root.
    v1(
        tmp_path,
        "/docker/1",
        "/docker/1",
        {
            "cpu/cgroup.procs": US,
            "cpu/cpu.cfs_quota_us": "-1\n",
            "memory/cgroup.procs": US,
            "memory/memory.limit_in_bytes": "9223372036854771712\n",
            "memory/memory.stat": f"hierarchical_memory_limit {400 * MIB}\n",
        },
    )
    read = confinement.read(tmp_path)
    assert (read.cpus, read.memory_bytes) == (None, 400 * MIB)
    assert any("ancestor cgroups" in text for text in read.hidden)


@pytest.mark.parametrize(
    ("groups", "how", "own", "whole"),
    [
        ({"/": {}, "/own": {}}, {}, "own", True),
        # A cgroup namespace: what looks like the root has the files of a group.
        ({"/": {}}, {"top_hidden": "yes"}, "", False),
        # The same, and the mount is older than the namespace: the group is found by its processes.
        ({"/": {}, "/x": {}, "/x/own": {}}, {"mount_root": "/../..", "own": "/"}, "x/own", True),
    ],
)
def test_where_our_group_is(
    tmp_path: Path, groups: dict[str, dict[str, str]], how: dict[str, str], own: str, whole: bool
) -> None:
    found = cgroups.chain("cpu", v2(tmp_path, groups, **how))
    assert found is not None
    assert found.groups[0] == tmp_path / "sys/fs/cgroup" / own
    assert found.whole is whole


def test_another_mount_of_the_hierarchy_is_not_chosen(tmp_path: Path) -> None:
    root = v2(tmp_path, {"/": {}, "/own": {}})
    mountinfo = root / "proc/self/mountinfo"
    usual = mountinfo.read_text()
    mountinfo.write_text(usual + usual.replace("/sys/fs/cgroup", "/tmp/a-tool-s"))
    shutil.copytree(root / "sys/fs/cgroup", root / "tmp/a-tool-s")
    found = cgroups.chain("cpu", root)
    assert found is not None
    assert found.groups[0] == tmp_path / "sys/fs/cgroup/own"


def test_without_control_groups_it_is_said(tmp_path: Path) -> None:
    write_files(tmp_path, {"proc/self/cgroup": "0::/own\n", "proc/self/mountinfo": ""})
    read = confinement.read(tmp_path)
    assert (read.cgroups, read.cpus, read.memory_bytes) == ("none", None, None)
    assert any("no cgroup can be read" in text for text in read.hidden)


@pytest.mark.parametrize(
    ("line", "faked"),
    [("40 1 0:40 /proc/stat /proc/stat rw - fuse.lxcfs lxcfs rw\n", True), ("", False)],
)
def test_a_faked_proc_stat_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, faked: bool
) -> None:
    monkeypatch.setattr(namespaces, "all_processes_visible", lambda proc: False)
    root = v2(tmp_path, {"/": {}})
    with (root / "proc/self/mountinfo").open("a") as file:
        file.write(line)
    assert any("lxcfs" in text for text in confinement.read(root).hidden) is faked


@pytest.mark.parametrize(
    ("kind", "writable", "good"),
    [("domain", True, True), ("domain threaded", True, False), ("domain", False, False)],
)
def test_a_cell_stays_below_our_own_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, writable: bool, good: bool
) -> None:
    found = cgroups.chain("", v2(tmp_path, {"/": {}, "/limited": {}, "/limited/own": {}}))
    assert found is not None
    monkeypatch.setattr(cgroups, "chain", lambda controller: found)
    (found.groups[0] / "cgroup.type").write_text(kind)
    monkeypatch.setattr(host.os, "access", lambda path, how: writable)
    assert host.own_cgroup() == (found.groups[0] if good else None)


@pytest.mark.parametrize(
    ("seconds", "status", "wanted"),
    [
        (0.0, "ok", "ok"),
        (0.019, "ok", "ok"),  # below one hundredth of two CPUs for a second
        (0.021, "ok", "invalid"),
        (0.9, "ok", "invalid"),
        (0.9, "error", "error"),  # its reason says more
    ],
)
def test_a_throttled_cell_is_invalid(
    tmp_path: Path, seconds: float, status: str, wanted: str
) -> None:
    root = v2(tmp_path, {"/": {}, "/q": {"cpu.stat": "nr_throttled 5\nthrottled_usec 700\n"}})
    quotas = confinement.Quotas(cgroups.chain("cpu", root))
    throttled = 700 + round(1e6 * seconds)
    write_files(
        root, {"sys/fs/cgroup/q/cpu.stat": f"nr_throttled 15\nthrottled_usec {throttled}\n"}
    )
    outcome = Outcome(status, None, cpu=None)  # type: ignore[arg-type]
    quotas.judge(outcome, 2, 1.0)
    assert outcome.status == wanted
    assert outcome.throttled_seconds == pytest.approx(seconds)
    if wanted == "invalid":
        assert f"10 times in 1.00 s, for {seconds:.2f} s summed" in (outcome.reason or "")


def test_without_a_counted_quota_nothing_is_said_of_throttling(tmp_path: Path) -> None:
    quotas = confinement.Quotas(cgroups.chain("cpu", v2(tmp_path, {"/": {}, "/q": {}})))
    outcome = Outcome("ok")
    quotas.judge(outcome, 2, 1.0)
    assert (outcome.status, outcome.throttled_seconds) == ("ok", None)


@pytest.mark.parametrize(
    ("used", "wanted"), [(None, "ok"), (0.3, "ok"), (0.45, "invalid"), (0.5, "invalid")]
)
def test_a_cell_that_uses_up_a_hidden_quota_is_invalid(
    tmp_path: Path, used: float | None, wanted: str
) -> None:
    root = v2(tmp_path, {"/": {}}, top_hidden="yes")
    quotas = confinement.Quotas(cgroups.chain("cpu", root), hidden=0.5)
    outcome = Outcome("ok", seconds=2.0, own_cpu_seconds=2 * used if used else None)
    quotas.judge(outcome, 1, 2.0)
    assert outcome.status == wanted


@pytest.mark.parametrize(
    ("whole", "seen", "spun", "found"),
    [
        (True, None, 0.2, None),  # nothing is hidden: nobody spins
        (False, None, 0.2, 0.2),
        (False, None, None, None),
        (False, 0.2, 0.2, None),  # the quota that is seen explains it
        (False, 1.0, 0.2, 0.2),
    ],
)
def test_where_quotas_are_hidden_somebody_spins(
    monkeypatch: pytest.MonkeyPatch,
    whole: bool,
    seen: float | None,
    spun: float | None,
    found: float | None,
) -> None:
    chain = cgroups.Chain(2, (Path("/cg"),), whole)
    monkeypatch.setattr(cgroups, "chain", lambda controller: chain)
    monkeypatch.setattr(hiddenquota, "measure", lambda cpus: spun)
    confined = synthetic.confinement(cpus=seen)
    machine = synthetic.machine(2).model_copy(update={"confinement": confined})
    confinement.look_for_hidden_quota(machine)
    assert confined.cpus_found == found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"cpus": 1.0}, ["may use 1.00 CPUs"]),
        ({"cpus": 2.0}, []),
        ({"cpus_found": 0.5}, ["leaves about 0.50 CPUs"]),
        ({"memory_bytes": 1 << 30}, ["may use 1024 MiB of the machine's 16384 MiB"]),
        ({"memory_bytes": 32 << 30}, []),
        ({"hidden": ["the rest"]}, ["hidden from this run: the rest"]),
        ({"denied": {"drop caches": "x"}}, ["caches are not dropped before each cell: x"]),
    ],
)
def test_what_the_run_is_warned_of(changes: dict[str, object], said: list[str]) -> None:
    confined = synthetic.confinement(**changes)
    machine = synthetic.machine(2).model_copy(update={"confinement": confined})
    found = confinement.warnings(machine)
    assert len(found) == len(said)
    assert all(part in text for part, text in zip(said, found, strict=True))
