# SPDX-License-Identifier: GPL-2.0-only
"""File systems as users write them: one grammar, and options that are merged, never dropped."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fscale.model import catalogue, mkfs, mount, paths, variant
from fscale.model.errors import FscaleError

EXT4 = catalogue.load_filesystem("ext4").mkfs
LAZY = {"lazy_itable_init=0", "lazy_journal_init=0", "nodiscard"}


def values(argv: Sequence[str], option: str) -> list[str]:
    """The values of an option as getopt would find them."""
    found = [after for word, after in itertools.pairwise(argv) if word == option]
    return [*found, *(w.removeprefix(option) for w in argv if w.startswith(option) and w != option)]


@pytest.mark.parametrize("name", catalogue.names(paths.FILESYSTEMS))
def test_what_the_suite_says_is_left_as_it_is(name: str) -> None:
    raw = catalogue.load_toml(paths.FILESYSTEMS / f"{name}.toml", type(catalogue.filesystems()[0]))
    assert catalogue.load_filesystem(name) == raw


@pytest.mark.parametrize(
    ("more", "option", "wanted"),
    [
        (["-E", "stride=16,stripe_width=16"], "-E", LAZY | {"stride=16", "stripe_width=16"}),
        (["-Estride=16"], "-E", LAZY | {"stride=16"}),
        (["-qFE", "stride=16"], "-E", LAZY | {"stride=16"}),
        (["-E", "lazy_itable_init"], "-E", LAZY - {"lazy_itable_init=0"} | {"lazy_itable_init"}),
        (["-E", "discard"], "-E", LAZY - {"nodiscard"} | {"discard"}),
        (["-E", "stride=8", "-E", "stride=16"], "-E", LAZY | {"stride=16"}),
        (["-O", "fast_commit", "-O", "^has_journal"], "-O", {"fast_commit", "^has_journal"}),
        (["-O^huge_file", "-O", "huge_file bigalloc"], "-O", {"huge_file", "bigalloc"}),
        (["-b", "1024"], "-b", {"1024"}),
        (["-i8192"], "-i", {"8192"}),
        (["-m", "0", "-m", "1"], "-m", {"1"}),
        (["-T", "largefile"], "-i", set()),
        (["-N", "1000"], "-i", set()),
    ],
)  # fmt: skip
def test_arguments_for_mke2fs_are_one_list(more: list[str], option: str, wanted: set[str]) -> None:
    given = values(mkfs.merge(EXT4, more), option)
    assert len(given) == bool(wanted)
    assert {part for text in given for part in text.split(",")} == wanted


@pytest.mark.parametrize(
    ("argv", "more", "wanted"),
    [
        (["mkfs.xfs", "-m", "reflink=1,crc=1", "{device}"], ["-m", "reflink=0", "-m", "rmapbt=1"],
         ["mkfs.xfs", "-m", "crc=1,reflink=0,rmapbt=1", "{device}"]),
        (["mkfs.xfs", "-d", "agcount=4", "{device}"], ["-dagsize=1g"],
         ["mkfs.xfs", "-d", "agsize=1g", "{device}"]),
        (["mkfs.xfs", "-L", "fscale", "-f", "{device}"], ["-f", "-L", "x"],
         ["mkfs.xfs", "-L", "x", "-f", "{device}"]),
        (["mkfs.btrfs", "--features", "no-holes", "{device}"], ["-O^no-holes", "--features=quota"],
         ["mkfs.btrfs", "-O", "^no-holes,quota", "{device}"]),
        (["mkfs.btrfs", "-m", "dup", "{device}"], ["--metadata=single"],
         ["mkfs.btrfs", "--metadata=single", "{device}"]),
        (["mkfs.btrfs", "--csum", "crc32c", "{device}"], ["--csum", "xxhash"],
         ["mkfs.btrfs", "--csum", "xxhash", "{device}"]),
        (["mkfs.btrfs", "--csum=crc32c", "{device}"], ["--checksum", "sha256"],
         ["mkfs.btrfs", "--checksum", "sha256", "{device}"]),
        (["mkfs.f2fs", "-O", "extra_attr", "{device}"], ["-O", "compression", "-o", "5"],
         ["mkfs.f2fs", "-O", "extra_attr,compression", "-o", "5", "{device}"]),
        (["nice", "/sbin/mkfs.ext4", "-O", "a", "{device}"], ["-O", "b"],
         ["nice", "/sbin/mkfs.ext4", "-O", "a,b", "{device}"]),
        (["mkfs", "-t", "ext4", "-E", "nodiscard", "{device}"], ["-E", "stride=2"],
         ["mkfs", "-t", "ext4", "-E", "nodiscard,stride=2", "{device}"]),
        (["mkfs.lanefs", "-q", "--domains", "1", "{device}"], ["-d2"],
         ["mkfs.lanefs", "-q", "-d2", "{device}"]),
        (["mkfs.lanefs", "-s", "1G", "{device}"], ["--size", "2G", "-b", "4096"],
         ["mkfs.lanefs", "--size", "2G", "-b", "4096", "{device}"]),
        # A TOML file that gives an option twice means both.
        (["mkfs.ext4", "-E", "lazy_itable_init=0", "-E", "stride=2", "{device}"], [],
         ["mkfs.ext4", "-E", "lazy_itable_init=0,stride=2", "{device}"]),
        (["bcachefs", "format", "--force", "{device}"], ["--replicas=2"],
         ["bcachefs", "format", "--force", "--replicas=2", "{device}"]),
    ],
)  # fmt: skip
def test_each_mkfs_is_given_an_option_once(
    argv: list[str], more: list[str], wanted: list[str]
) -> None:
    assert mkfs.merge(argv, more) == wanted
    assert mkfs.merge(wanted) == wanted


def test_what_has_no_mkfs_takes_no_arguments_for_it() -> None:
    with pytest.raises(FscaleError) as caught:
        catalogue.load_filesystem("tmpfs:mkfs=-O fast")
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("argv", "more"),
    [
        (EXT4, ["/dev/sda"]),
        (EXT4, ["-O"]),
        (["mkfs.xfs", "{device}"], ["/dev/sda", "-f"]),
        (EXT4, ["-n"]),
        (EXT4, ["-qS"]),
        (EXT4, ["-m0", "-V"]),
        (EXT4, ["--", "-E", "stride=1"]),
        ([*EXT4, "-n"], []),
        (["mkfs.xfs", "{device}"], ["-fN"]),
        (["mkfs.xfs", "{device}"], ["-V"]),
        (["mkfs.btrfs", "{device}"], ["--version"]),
        (["mkfs.btrfs", "{device}"], ["--help"]),
        (["mkfs.f2fs", "{device}"], ["-V"]),
        (["mkfs.lanefs", "{device}"], ["-h"]),
        (["mkfs.new", "--mode=1", "{device}"], ["--mode=2"]),
        (["mkfs.new", "-o", "a", "{device}"], ["-o", "b"]),
    ],
)
def test_what_cannot_be_merged_is_refused(argv: list[str], more: list[str]) -> None:
    with pytest.raises(FscaleError) as caught:
        mkfs.merge(argv, more)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        (["relatime"], ["relatime"]),
        (["strictatime", "lazytime"], ["strictatime", "lazytime"]),
        (["noatime", "relatime"], ["relatime"]),
        (["data=journal", "commit=1", "data=ordered"], ["noatime", "commit=1", "data=ordered"]),
        (["barrier", "nobarrier"], ["noatime", "nobarrier"]),
        (["barrier=0", "nodelalloc"], ["noatime", "barrier=0", "nodelalloc"]),
        (["discard", "nodiscard", "discard=async"], ["noatime", "discard=async"]),
        (["sync", "async"], ["noatime", "async"]),
        (["device=/a", "device=/b"], ["noatime", "device=/a", "device=/b"]),
    ],
)
def test_a_mount_option_replaces_what_says_otherwise(more: list[str], wanted: list[str]) -> None:
    assert mount.merge(["noatime"], more) == wanted


@pytest.mark.parametrize(
    ("asked", "shown", "wrong"),
    [
        (["relatime"], ["rw", "noatime"], ["relatime"]),
        (["relatime"], ["rw", "relatime"], []),
        (["strictatime"], ["rw"], []),
        (["strictatime"], ["rw", "relatime"], ["strictatime"]),
        (["atime"], ["rw", "relatime"], []),
        (["noatime"], ["rw", "relatime"], ["noatime"]),
        (["data=journal"], ["data=ordered"], ["data=journal"]),
        (["barrier"], ["nobarrier"], ["barrier"]),
        (["barrier=0"], ["nobarrier"], []),
        (["nobarrier"], ["barrier"], ["nobarrier"]),
        (["commit=1"], ["commit=5"], ["commit=1"]),
        (["logbsize=65536", "size=1g"], ["logbsize=64k", "size=1048576k"], []),
        (["compress=zstd"], ["compress=zstd:3"], []),
        (["compress=zstd"], ["compress=lzo"], ["compress=zstd"]),
        (["nodiscard"], ["discard=async"], ["nodiscard"]),
        (["nodiscard"], ["rw"], []),
        (["rw"], ["ro"], ["rw"]),
        (["async"], ["sync"], ["async"]),
        (["inode32"], ["inode64"], ["inode32"]),
        (["dioread_lock"], ["dioread_nolock"], ["dioread_lock"]),
        (["uquota"], ["usrquota"], []),
        (["journal_ioprio=3"], ["rw"], []),
        (["compress"], ["compress=zlib:3"], []),
        (["compress-force"], ["compress-force=zlib:3"], []),
        (["compress"], ["compress=no"], ["compress"]),
        (["init_itable"], ["init_itable=10"], []),
        (["commit=0"], ["commit=5"], []),
        (["dioread_lock"], ["nodioread_nolock"], []),
        (["dioread_nolock"], ["nodioread_nolock"], ["dioread_nolock"]),
        (["discard=sync"], ["discard"], []),
        (["discard=async"], ["discard"], ["discard=async"]),
        (["discard"], ["discard=async"], ["discard"]),
        (["dax"], ["dax=always"], []),
        (["dax"], ["dax=inode"], ["dax"]),
        (["size=40%", "nr_blocks=10000"], ["size=40000k"], []),
        (["noload"], ["norecovery"], []),
        (["norecovery"], ["norecovery"], []),
    ],
)
def test_an_option_that_the_kernel_shows_otherwise_had_no_effect(
    asked: list[str], shown: list[str], wrong: list[str]
) -> None:
    assert mount.without_effect(asked, shown) == wrong


def own_file(directory: Path) -> Path:
    path = directory / "ext4-fc.toml"
    path.write_text(
        'title = "t"\nkernel = "ext4"\n'
        'mkfs = ["mkfs.ext4", "-q", "-O", "fast_commit", "-E", "nodiscard", "{device}"]\n'
    )
    return path


def test_a_file_of_the_users_own_is_a_file_system_everywhere(tmp_path: Path) -> None:
    path = own_file(tmp_path)
    text = f"{path}:mount=commit=1:mkfs=-E stride=2"
    fs = catalogue.load_filesystem(text)
    assert fs.mkfs[2:] == ["-O", "fast_commit", "-E", "nodiscard,stride=2", "{device}"]
    assert fs.mount_options == ["noatime", "commit=1"]
    assert catalogue.short_name(text) == "ext4-fc:mount=commit=1:mkfs=-E_stride=2"
    side = variant.parse(f"{text}:binary=/b")
    assert catalogue.load_filesystem(side.filesystem) == fs
    assert (side.label, side.binary) == (f"{catalogue.short_name(text)}:binary=_b", Path("/b"))
    guest = variant.parse(f"{path}:8:kernel=6.12:mount=commit=1:module=a.ko")
    assert (guest.filesystem, guest.own_file) == (f"{path}:8:mount=commit=1", path)
    assert guest.in_guest == "ext4-fc:8:mount=commit=1"


@pytest.mark.parametrize(
    ("text", "partitions", "options"),
    [
        ("ext4", 1, ()),
        ("ext4:8", 8, ()),
        ("ext4:8:mount=commit=1", 8, ("commit=1",)),
        ("ext4:mount=commit=1:partitions=4", 4, ("commit=1",)),
        ("./x.toml:2", 2, ()),
    ],
)
def test_partitions_stand_after_the_name(
    text: str, partitions: int, options: tuple[str, ...]
) -> None:
    found = variant.parse(text)
    assert (found.partitions, found.mount) == (partitions, options)
    assert variant.parse(found.label).partitions == partitions


@pytest.mark.parametrize(
    ("text", "name", "kernel", "modules"),
    [
        ("ext4", "ext4", None, ()),
        ("kernel:6.1", None, "6.1", ()),
        ("kernel:/boot/vmlinuz-6.1:module=a.ko", None, "/boot/vmlinuz-6.1", ("a.ko",)),
        ("my:kernel=trixie:linux-image-6.12-amd64:module=a.ko:module=b.ko", "my",
         "trixie:linux-image-6.12-amd64", ("a.ko", "b.ko")),
        ("my:module=a.ko", "my", None, ("a.ko",)),
        ("ext4:mount=sync:kernel=6.1", "ext4", "6.1", ()),
    ],
)  # fmt: skip
def test_a_kernel_and_modules_are_those_of_a_guest(
    text: str, name: str | None, kernel: str | None, modules: tuple[str, ...]
) -> None:
    found = variant.parse(text)
    assert (found.name, found.kernel) == (name, kernel)
    assert tuple(map(str, found.modules)) == modules
    assert found.of_guest == (text != "ext4")


@pytest.mark.parametrize(
    "text", ["xfs:kernel=/b/bzImage:modules=/lib/m:module=a.ko", "kernel:/b/bzImage:modules=/lib/m"]
)
def test_an_image_has_its_modules_elsewhere(text: str) -> None:
    found = variant.parse(text)
    assert (found.kernel, found.kernel_modules) == ("/b/bzImage", Path("/lib/m"))
    assert "/lib/m" not in found.filesystem


def test_files_of_the_kernel_are_set_with_the_rest() -> None:
    text = "ext4:set=/sys/block/{name}/queue/scheduler=none:set=/proc/sys/vm/a=1 2:mount=commit=1"
    asked = variant.parse(text)
    assert asked.settings == (
        ("/sys/block/{name}/queue/scheduler", "none"),
        ("/proc/sys/vm/a", "1 2"),
    )
    assert catalogue.load_filesystem(text).settings == dict(asked.settings)
    assert "/" not in asked.label
    assert variant.split_partitions(asked.label) == ("ext4", 1)
    assert catalogue.split_filesystems(f"xfs,ext4:set=/sys/a=1,2,{text}") == [
        "xfs", "ext4:set=/sys/a=1,2", text,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["kernel:", "kernel:6.1:kernel=6.12", "kernel:6.1:mount=sync",
     "ext4:modules=/lib/m",
     "ext4:kernel=", "ext4:kernel=6.1:kernel=6.12", ":mount=a", "ext4:set=/sys/a", "ext4:set=a=1",
     "ext4:set=/etc/passwd=1", "ext4:set=/sys/../etc/a=1", "ext4:set=/sys/a=",
     "ext4:set=/sys/a=1:set=/sys/a=2", "ext4:binary=/a:binary=/b"],
)  # fmt: skip
def test_what_is_no_variant_is_refused(text: str) -> None:
    with pytest.raises(FscaleError) as caught:
        variant.parse(text)
    assert caught.value.code == 2


@pytest.mark.parametrize("part", ["kernel=6.12", "module=a.ko", "binary=/b"])
def test_a_file_system_that_is_measured_here_has_no_kernel_of_its_own(part: str) -> None:
    with pytest.raises(FscaleError) as caught:
        catalogue.load_filesystem(f"ext4:{part}")
    assert part.partition("=")[0] in str(caught.value)


def test_more_partitions_of_a_variant(tmp_path: Path) -> None:
    assert variant.with_partitions("ext4:mount=commit=1", 8) == "ext4:8:mount=commit=1"


@pytest.mark.parametrize(
    "text",
    ["ext4:x", "ext4:1", "ext4:mout=a", "ext4:8:partitions=8", "ext4:mkfs='", "ext4:mount=a b",
     "ext4:mkfs=/dev/sda", "tmpfs:mkfs=-q", "tmpfs:mount=size=1g"],
)  # fmt: skip
def test_what_is_no_file_system_is_refused(text: str) -> None:
    with pytest.raises(FscaleError) as caught:
        catalogue.load_filesystem(text)
    assert caught.value.code == 2
    assert text.partition(":")[2].partition("=")[0] in str(caught.value)


def test_a_comma_parts_file_systems_and_options() -> None:
    text = "xfs,ext4:mount=data=journal,commit=1:mkfs=-O a,b,btrfs:mkfs=-O ^no-holes,tmpfs"
    assert catalogue.split_filesystems(text) == [
        "xfs", "ext4:mount=data=journal,commit=1:mkfs=-O a,b", "btrfs:mkfs=-O ^no-holes", "tmpfs",
    ]  # fmt: skip
    assert catalogue.split_filesystems("ext4,exf4") == ["ext4", "exf4"]


def changed(name: str, **fields: Any) -> list[str]:
    return (
        variant.parse(name)
        .apply(catalogue.load_filesystem("tmpfs").model_copy(update=fields))
        .mount_options
    )


def test_a_size_that_the_runner_does_not_know_of_is_refused() -> None:
    with pytest.raises(FscaleError, match="TOML file"):
        changed("tmpfs:mount=size=1g")
    assert changed("tmpfs:mount=size=1g", mount_options=["noatime"]) == ["noatime", "size=1g"]
