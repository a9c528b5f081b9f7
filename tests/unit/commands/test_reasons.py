# SPDX-License-Identifier: GPL-2.0-only
"""What commands of others said of their failure is what the user is told."""

import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from fscale.analysis.reader import load
from fscale.commands.options.chosen import choose
from fscale.model.catalogue import split_filesystems, split_names
from fscale.model.errors import FscaleError
from fscale.runner.machine.changes import Mount
from fscale.runner.progress import summary
from fscale.system.executor import CommandFailed, Executor, summarise_failure, which
from fscale.vm import debian
from fscale.vm.debian import Apt
from fscale.vm.steps import Steps
from tests.support.synthetic import cell, grid, key, write_run

XFS = (
    "mkfs.xfs: invalid option -- 'Z'\nunknown option -Z \nUsage: mkfs.xfs\n" + 20 * "/* x */ [-y]\n"
)
E2FS = (
    "\nBad option(s) specified: foo\n\nExtended options are separated by commas.\n\nValid extended "
)
MOUNT = (
    "mount: /mnt: wrong fs type, bad option, bad superblock on /dev/loop1.\n"
    "       dmesg(1) may have more information after failed mount system call.\n"
)


@pytest.mark.parametrize(
    ("text", "kept", "left"),
    [
        (XFS, "invalid option -- 'Z' / unknown option -Z", "/* x */"),
        (E2FS + "options are:\n" + 30 * "\tstride=<n>\n", "Bad option(s) specified: foo", "stride"),
        (MOUNT, "bad option", "\n"),
        ("Traceback:\n" + 30 * "  File\n" + "ValueError: no\n", "ValueError: no", 3 * "File / "),
        ("usage: x\n  [-y]\n", "usage: x", "nothing else"),
        ("modprobe: FATAL: Module x not found\n", "FATAL: Module x not found", "/"),
    ],
)
def test_the_reason_is_kept_and_the_usage_is_not(text: str, kept: str, left: str) -> None:
    assert kept in summarise_failure(text)
    assert left not in summarise_failure(text)


BAD_ARGUMENTS = {
    "mkfs.xfs": (["-f", "-m", "reflunk=1"], "reflunk"),
    "mkfs.ext4": (["-F", "-q", "-E", "strode=1"], "strode"),
    "mkfs.btrfs": (["-f", "-O", "raid57"], "raid57"),
}


@pytest.mark.parametrize("tool", BAD_ARGUMENTS)
def test_a_wrong_argument_of_mkfs_is_named(tool: str, tmp_path: Path) -> None:
    if which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(400 << 20)
    arguments, wrong = BAD_ARGUMENTS[tool]
    with pytest.raises(CommandFailed) as failed:
        Executor().run([tool, *arguments, str(image)])
    said = str(failed.value).partition("failed (")[2]
    assert wrong in said
    assert len(said) < 400


@pytest.mark.root
@pytest.mark.parametrize("filesystem", ["tmpfs", "ext4"])
def test_a_mount_option_that_is_none_is_named(filesystem: str, tmp_path: Path) -> None:
    source = "fscale"
    if filesystem == "ext4":
        source = str(tmp_path / "image")
        with Path(source).open("wb") as file:
            file.truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", source], check=True)
    options = ["noatime", "foo=bar"]
    mount = Mount(source=source, target=tmp_path / "at", fstype=filesystem, options=options)
    with pytest.raises(CommandFailed) as failed:
        mount.apply(Executor())
    assert "foo" in str(failed.value).partition("failed (")[2]


def test_a_run_without_a_good_cell_has_no_table() -> None:
    failed = cell(key(), 0, status="error", reason="mkfs failed")
    assert not summary([failed]).rows
    assert len(summary([failed, cell(key(2), 10)]).rows) == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ext4,xfs", ["ext4", "xfs"]),
        ("./a,b.toml", ["./a,b.toml"]),
        ("ext4, ./a,b.toml ,xfs", ["ext4", "./a,b.toml", "xfs"]),
        ("./c.toml,./a,b.toml", ["./c.toml", "./a,b.toml"]),
        ("./a,b.toml,./a,b.toml", ["./a,b.toml", "./a,b.toml"]),
        ("ext4,c.toml", ["ext4", "c.toml"]),
        ("x,none.toml", ["x", "none.toml"]),
        (",ext4,,", ["ext4"]),
    ],
)
def test_a_comma_in_a_path_parts_nothing(
    text: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a,b.toml", "c.toml"):
        Path(name).touch()
    assert split_names(text) == names
    assert split_filesystems(text) == names


def test_a_comma_in_a_measured_name_parts_nothing(tmp_path: Path) -> None:
    run = write_run(tmp_path, grid([1], 2, ["DRBL"], ["a,b", "ext4"]), filesystems=["a,b", "ext4"])
    for asked, drawn in (("a,b", {"a,b"}), ("ext4,a,b", {"a,b", "ext4"})):
        assert {c.key.filesystem for c in choose(load(run), None, asked).cells} == drawn


@pytest.mark.parametrize("known", [False, True])
def test_lists_that_cannot_be_fetched_are_said(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's apt-get warns only, and then there is no package in the empty lists."""
    tool = tmp_path / "apt-get"
    tool.write_text(
        "#!/bin/sh\necho 'W: Failed to fetch http://deb.debian.org' >&2\n"
        'case "$*" in *Error-Mode=any*) exit 100;; esac\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(debian, "need", lambda _tool, _package: str(tool))
    apt = Apt("bookworm", Steps(Console(stderr=True)))
    if known:
        lists = apt.base / "state" / "lists"
        lists.mkdir(parents=True)
        (lists / "deb.debian.org_main_Packages").touch()
        apt._update()
    else:
        with pytest.raises(FscaleError, match=r"lists of bookworm.*Failed to"):
            apt.latest_kernel()
    assert not (apt.base / "updated").exists()
