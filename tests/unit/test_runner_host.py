# SPDX-License-Identifier: GPL-2.0-only
"""What the machine says about its kernel and its settings, from made-up /proc and /sys."""

import gzip
import platform
import struct
from pathlib import Path

import pytest

from fscale.runner import geometry, kernel, tuning


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


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
    put(tmp_path, {f"boot/config-{platform.release()}": CONFIG})
    build = kernel.read(tmp_path)
    assert build.debug == ["LOCKDEP", "LOCK_STAT"]
    assert build.debug_from == f"/boot/config-{platform.release()}"
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(b"CONFIG_KASAN=y\n"))
    assert kernel.read(tmp_path).debug == ["KASAN"]


def test_debug_options_show_without_a_configuration(tmp_path: Path) -> None:
    symbols = "0000000000000000 T kasan_report\n0000000000000000 t ext4_foo [ext4]\n"
    put(tmp_path, {"proc/lockdep": "", "proc/kallsyms": symbols})
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
    put(tmp_path / "sys/devices/system/cpu", files)
    assert tuning.read(tmp_path).turbo is turbo


def test_a_c_state_is_on_when_all_cpus_may_enter_it(tmp_path: Path) -> None:
    cpus = tmp_path / "sys/devices/system/cpu"
    for cpu, off in ((0, "0"), (1, "1")):
        put(cpus / f"cpu{cpu}/cpuidle/state0", {"name": "POLL\n", "disable": "0\n"})
        put(cpus / f"cpu{cpu}/cpuidle/state1", {"name": "C6\n", "disable": f"{off}\n"})
    put(cpus / "cpuidle", {"current_driver": "intel_idle\n", "current_governor_ro": "menu\n"})
    put(
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
