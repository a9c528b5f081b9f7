# SPDX-License-Identifier: GPL-2.0-only
"""What the machine says about its kernel and its settings, from made-up /proc and /sys."""

import gzip
import os
import platform
import struct
from pathlib import Path

import pytest

from fscale.model.errors import FscaleError
from fscale.model.topology import core_counts, machine_layout
from fscale.runner.machine import host, kernel, tuning
from fscale.runner.storage import blockqueue, geometry
from tests.support import synthetic
from tests.support.files import write_files


def note(name: bytes, kind: int, value: bytes) -> bytes:
    padded = [part + bytes(-len(part) % 4) for part in (name, value)]
    return struct.pack("=III", len(name), len(value), kind) + b"".join(padded)


def test_the_build_id_is_found_among_other_notes() -> None:
    notes = note(b"Xen\0", 6, b"x86") + note(b"GNU\0", 3, bytes(range(20))) + note(b"L\0", 3, b"?")
    assert kernel.build_id(notes) == bytes(range(20)).hex()
    assert kernel.build_id(note(b"Linux\0", 3, b"1234")) is None
    assert kernel.build_id(b"") is None


CONFIG = "# CONFIG_KASAN is not set\nCONFIG_LOCKDEP=y\nCONFIG_LOCK_STAT=y\nCONFIG_EXT4_FS=m\n"


def test_debug_options_come_from_the_configuration(tmp_path: Path) -> None:
    write_files(tmp_path, {f"boot/config-{platform.release()}": CONFIG})
    build = kernel.read(tmp_path)
    assert build.debug == ["LOCKDEP", "LOCK_STAT"]
    assert build.debug_from == f"/boot/config-{platform.release()}"
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(b"CONFIG_KASAN=y\n"))
    assert kernel.read(tmp_path).debug == ["KASAN"]


def test_debug_options_show_without_a_configuration(tmp_path: Path) -> None:
    symbols = "0000000000000000 T kasan_report\n0000000000000000 t ext4_foo [ext4]\n"
    write_files(tmp_path, {"proc/lockdep": "", "proc/kallsyms": symbols})
    build = kernel.read(tmp_path)
    assert (build.debug, build.debug_from) == (["LOCKDEP", "KASAN"], "signs")
    assert kernel.read(tmp_path / "empty").debug == []


@pytest.mark.parametrize(
    ("files", "turbo"),
    [
        ({"intel_pstate/no_turbo": "1\n"}, False),
        ({"intel_pstate/no_turbo": "0\n"}, True),
        ({"cpufreq/boost": "1\n"}, True),
        ({}, None),
    ],
)
def test_turbo(tmp_path: Path, files: dict[str, str], turbo: bool | None) -> None:
    write_files(tmp_path / "sys/devices/system/cpu", files)
    assert tuning.read(tmp_path).turbo is turbo


@pytest.mark.parametrize(
    ("turbo", "counts", "warned"),
    [(True, [1, 2], 1), (True, [2], 0), (False, [1, 2], 0), (None, [1, 2], 0)],
)
def test_turbo_is_warned_of_where_there_is_a_curve(
    tmp_path: Path, turbo: bool | None, counts: list[int], warned: int
) -> None:
    there = synthetic.machine(2)
    assert host.turbo_warning(there, counts) == []  # of before settings were recorded
    found = tuning.read(tmp_path).model_copy(update={"turbo": turbo})
    there = there.model_copy(update={"tuning": found})
    assert len(host.turbo_warning(there, counts)) == warned


def test_a_c_state_is_on_when_all_cpus_may_enter_it(tmp_path: Path) -> None:
    cpus = tmp_path / "sys/devices/system/cpu"
    for cpu, off in ((0, "0"), (1, "1")):
        write_files(cpus / f"cpu{cpu}/cpuidle/state0", {"name": "POLL\n", "disable": "0\n"})
        write_files(cpus / f"cpu{cpu}/cpuidle/state1", {"name": "C6\n", "disable": f"{off}\n"})
    write_files(
        cpus / "cpuidle", {"current_driver": "intel_idle\n", "current_governor_ro": "menu\n"}
    )
    write_files(
        tmp_path,
        {
            "proc/sys/kernel/numa_balancing": "1\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        },
    )
    found = tuning.read(tmp_path)
    assert found.idle_states == {"POLL": True, "C6": False}
    assert (found.idle_driver, found.idle_governor) == ("intel_idle", "menu")
    assert (found.numa_balancing, found.huge_pages) == ("1", "madvise")
    assert found.shmem_huge_pages is None


MODELS = "none voluntary (full) lazy\n"
DYNAMIC = "#1 SMP PREEMPT_DYNAMIC Debian 6.12\n"


@pytest.mark.parametrize(
    ("version", "debugfs", "cmdline", "config", "model", "source"),
    [
        (DYNAMIC, MODELS, "preempt=none", "", "full", "/sys/kernel/debug/sched/preempt"),
        (DYNAMIC, "(none) voluntary full\n", "", "", "none", "/sys/kernel/debug/sched/preempt"),
        ("#1 SMP PREEMPT_RT x", "full (lazy)", "", "", "rt, lazy", "/sys/kernel/debug/sched/preem"),
        (DYNAMIC, None, "a preempt=none preempt=voluntary b", "", "voluntary", "kernel command"),
        (DYNAMIC, None, "quiet", "CONFIG_PREEMPT_VOLUNTARY=y\n", "voluntary", "/boot/config-"),
        (DYNAMIC, None, "", "CONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "lazy", "/boot/"),
        (DYNAMIC, None, "", "CONFIG_PREEMPT=y\n", "full", "/boot/config-"),
        (DYNAMIC, None, "", "", None, "PREEMPT_DYNAMIC, and no debugfs"),
        ("#1 SMP PREEMPT_RT Debian", None, "preempt=none", "", "rt", "uname -v"),
        ("#1 SMP PREEMPT_LAZY x", None, "", "", "lazy", "uname -v"),
        ("#1 SMP PREEMPT x", None, "preempt=none", "CONFIG_PREEMPT=y\n", "full", "/boot/config-"),
        ("#1 SMP PREEMPT x", None, "", "CONFIG_PREEMPT_LAZY=y\n", "lazy", "/boot/config-"),
        (DYNAMIC, None, "preempt=none preempt=fulll", "", "none", "kernel command line"),
        ("#1 SMP x", None, "preempt=full", "CONFIG_PREEMPT_NONE=y\n", "none", "/boot/config-"),
        ("#1 SMP x", None, "", "", None, "nothing says it"),
    ],
)
def test_preemption_model(
    tmp_path: Path,
    version: str,
    debugfs: str | None,
    cmdline: str,
    config: str,
    model: str | None,
    source: str,
) -> None:
    files = {"proc/sys/kernel/version": version, "proc/cmdline": cmdline}
    files[f"boot/config-{platform.release()}"] = config
    if debugfs:
        files["sys/kernel/debug/sched/preempt"] = debugfs
    found = tuning.read(write_files(tmp_path, files))
    assert found.preempt == model
    assert (found.preempt_from or "").startswith(source)


@pytest.mark.parametrize(
    ("release", "model"),
    [("6.12.118+deb13-amd64", "full"), ("5.15.0", "full"), ("6.13.0-rc1", None), ("7.0", None)],
)
def test_a_kernel_that_says_preempt_alone_may_be_lazy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, model: str | None
) -> None:
    monkeypatch.setattr(platform, "release", lambda: release)
    files = {"proc/sys/kernel/version": "#1 SMP PREEMPT x", "proc/cmdline": ""}
    assert tuning.read(write_files(tmp_path, files)).preempt == model


LSM, CURRENT = "sys/kernel/security/lsm", "proc/self/attr/current"
ENFORCE = "sys/fs/selinux/enforce"
PROFILES = "sys/kernel/security/apparmor/profiles"
SELINUX, APPARMOR = ["capability", "landlock", "selinux"], ["capability", "apparmor"]
SE, AA = ({LSM: ",".join(names)} for names in (SELINUX, APPARMOR))


@pytest.mark.parametrize(
    ("files", "names", "state"),
    [
        ({}, None, {}),
        ({LSM: "capability,yama"}, ["capability", "yama"], {}),
        (SE | {ENFORCE: "1", CURRENT: "u:r:t:s0\0"}, SELINUX, {"selinux": "enforcing"}),
        (SE | {ENFORCE: "0", CURRENT: "u:r:t:s0"}, SELINUX, {"selinux": "permissive"}),
        (SE | {ENFORCE: "0", CURRENT: "kernel"}, SELINUX, {"selinux": "no policy is loaded"}),
        # securityfs is not mounted: those that show elsewhere are on at least.
        ({ENFORCE: "1"}, ["selinux"], {"selinux": "enforcing"}),
        (
            {"sys/module/apparmor/parameters/enabled": "Y"},
            ["apparmor"],
            {"apparmor": "unknown profiles; this process is unknown"},
        ),
        ({"sys/module/apparmor/parameters/enabled": "N"}, None, {}),
        (
            AA | {PROFILES: "a (enforce)\n", "proc/self/attr/apparmor/current": "docker (enforce)"},
            APPARMOR,
            {"apparmor": "profiles; this process is docker (enforce)"},
        ),
        (
            AA | {PROFILES: "", CURRENT: "unconfined"},
            APPARMOR,
            {"apparmor": "no profile; this process is unconfined"},
        ),
    ],
)
def test_security_modules(
    tmp_path: Path, files: dict[str, str], names: list[str] | None, state: dict[str, str]
) -> None:
    found = tuning.read(write_files(tmp_path, files))
    assert (found.lsms, found.lsm_state) == (names, state)


def test_what_else_moves_figures(tmp_path: Path) -> None:
    cpus = "sys/devices/system/cpu"
    files = {
        "proc/sys/vm/dirty_ratio": "20\n",
        "proc/sys/vm/swappiness": "1\n",
        "proc/sys/kernel/sched_autogroup_enabled": "1\n",
        "proc/sys/kernel/sched_something_new": "a\tb\n",
        "proc/sys/kernel/hostname": "not a setting\n",
        f"{cpus}/cpu0/cpufreq/scaling_driver": "amd-pstate-epp\n",
        f"{cpus}/cpu0/cpufreq/energy_performance_preference": "performance\n",
        f"{cpus}/cpu1/cpufreq/energy_performance_preference": "balance_power\n",
        f"{cpus}/cpu0/power/energy_perf_bias": "6\n",
        f"{cpus}/isolated": "2-3\n",
        f"{cpus}/nohz_full": "(null)\n",
        "proc/cmdline": "rcu_nocbs=2-3 quiet\n",
        "proc/irq/default_smp_affinity": "ff\n",
        "proc/77/comm": "irqbalance\n",
        "proc/self/timerslack_ns": "50000\n",
        "sys/kernel/mm/ksm/run": "1\n",
        "sys/kernel/mm/lru_gen/enabled": "0x0007\n",
    }
    found = tuning.read(write_files(tmp_path, files))
    assert found.sysctls == {
        "kernel.sched_autogroup_enabled": "1",
        "kernel.sched_something_new": "a b",
        "vm.dirty_ratio": "20",
        "vm.swappiness": "1",
    }
    assert found.frequency_driver == "amd-pstate-epp"
    assert found.energy_preference == "balance_power,performance"
    assert found.energy_bias == "6"
    assert (found.isolated_cpus, found.nohz_full_cpus, found.rcu_nocbs_cpus) == ("2-3", "", "2-3")
    assert (found.irq_affinity, found.irqbalance) == ("ff", True)
    assert (found.timer_slack_ns, found.same_page_merging) == ("50000", "1")
    assert found.multi_generation_lru == "0x0007"
    bare = tuning.read(tmp_path / "empty")
    assert (bare.isolated_cpus, bare.energy_preference, bare.irqbalance) == (None, None, False)


@pytest.mark.parametrize(
    ("isolated", "nohz_full", "said"),
    [(None, None, None), ("", "", None), ("1", "", "CPUs 1 "), ("", "0-1,70", "CPUs 0-1 ")],
)
def test_cpus_that_are_set_apart_are_warned_of(
    tmp_path: Path, isolated: str | None, nohz_full: str | None, said: str | None
) -> None:
    changes = {"isolated_cpus": isolated, "nohz_full_cpus": nohz_full}
    found = tuning.read(tmp_path).model_copy(update=changes)
    warnings = host.warnings(synthetic.machine(2).model_copy(update={"tuning": found}))
    told = [text for text in warnings if "isolcpus" in text]
    assert [text[: len(said or "")] for text in told] == ([said] if said else [])


@pytest.mark.parametrize(
    ("order", "isolated", "because"),
    [
        ([0, 1, 2, 3], "1", ""),
        (
            [0], "1-2",
            "the kernel isolates CPUs 1-2 (isolcpus=), which only processes that ask for them may "
            "use: taskset -c 0-2 fscale ..., and the affinity (taskset) or the cpuset of this "
            "process excludes CPUs 3",
        ),
        ([0, 1], "", "the affinity (taskset) or the cpuset of this process excludes CPUs 2-3"),
        ([0, 1], None, "the affinity (taskset) or the cpuset of this process excludes CPUs 2-3"),
    ],
)  # fmt: skip
def test_isolcpus_is_the_reason_where_it_keeps_cpus_from_a_run(
    tmp_path: Path, order: list[int], isolated: str | None, because: str
) -> None:
    found = tuning.read(tmp_path).model_copy(update={"isolated_cpus": isolated})
    machine = synthetic.machine(4, cpu_order=order, tuning=found)
    assert host.why_denied(machine) == because
    warnings = " ".join(host.warnings(machine))
    assert (f"are not used, because {because}; so all CPUs stay online" in warnings) is bool(
        because
    )
    if because:
        with pytest.raises(FscaleError) as caught:
            core_counts([4], machine_layout(machine), why_fewer=because)
        assert f"this run may use {len(order)}, because {because}; give" in str(caught.value)


def test_settings_of_two_runs_differ_by_their_names(tmp_path: Path) -> None:
    def flat(name: str, files: dict[str, str]) -> dict[str, object]:
        return tuning.read(write_files(tmp_path / name, files)).flat

    one = flat("a", {"proc/sys/vm/dirty_ratio": "20", "sys/kernel/debug/sched/preempt": "(none)"})
    two = flat("b", {"proc/sys/vm/dirty_ratio": "40", "sys/kernel/debug/sched/preempt": "(full)"})
    differing = {name for name in one.keys() & two.keys() if one[name] != two[name]}
    assert differing == {"preempt", "sysctls.vm.dirty_ratio"}


def test_the_queue_of_a_device_and_of_its_partitions(tmp_path: Path) -> None:
    here = tmp_path.stat().st_dev
    number = f"{os.major(here)}:{os.minor(here)}"
    disk = "sys/devices/disk"
    files = {
        f"{disk}/queue/scheduler": "mq-deadline kyber [bfq] none\n",
        f"{disk}/queue/write_cache": "write back\n",
        f"{disk}/queue/read_ahead_kb": "128\n",
        f"{disk}/disk1/partition": "1\n",
    }
    write_files(tmp_path, files)
    assert blockqueue.read_queue(tmp_path, tmp_path) is None  # as on tmpfs
    link = tmp_path / "sys/dev/block" / number
    link.parent.mkdir(parents=True)
    wanted = {"scheduler": "bfq", "write_cache": "write back", "read_ahead_kb": "128"}
    for name in ("disk", "disk/disk1"):
        link.symlink_to(tmp_path / "sys/devices" / name)
        assert blockqueue.read_queue(tmp_path, tmp_path) == wanted
        link.unlink()


XFS = """\
meta-data=/dev/loop0             isize=512    agcount=4, agsize=38400 blks
         =                       crc=1        finobt=1, sparse=1, rmapbt=0
data     =                       bsize=4096   blocks=153600, imaxpct=25
naming   =version 2              bsize=4096   ascii-ci=0, ftype=1
log      =internal log           bsize=1024   blocks=16384, version=2
"""
EXT4 = "Filesystem features:      has_journal  64bit\nInode size:\t          256\nBlock count:  7\n"
BTRFS = "csum_type\t\t0 (crc32c)\nnodesize\t\t16384\nincompat_flags\t\t0x341\n\t\t\t( NO_HOLES )\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            XFS,
            {
                "meta-data.agsize": "38400",
                "meta-data.crc": "1",
                "data.bsize": "4096",
                "log.bsize": "1024",
                "log.blocks": "16384",
            },
        ),
        (EXT4, {"Filesystem features": "has_journal 64bit", "Inode size": "256"}),
        (BTRFS, {"csum_type": "0 (crc32c)", "nodesize": "16384", "incompat_flags": "0x341"}),
    ],
)
def test_geometry(text: str, wanted: dict[str, str]) -> None:
    assert geometry.parse(text, [*wanted, "not there"]) == wanted
