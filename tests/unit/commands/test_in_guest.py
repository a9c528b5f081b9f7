# SPDX-License-Identifier: GPL-2.0-only
"""What a guest is to measure is checked before it boots."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fscale.cli import app
from fscale.commands.options.bundle import bundle
from fscale.commands.options.in_guest import run_in_guest
from fscale.commands.options.run import RunOptions
from fscale.model.config import Suite
from fscale.model.errors import FscaleError
from tests.support.runner import suite

QUICK = Path("quick")


def suite_in_guest(suite: Path, arguments: list[str], own: list[Path]) -> Suite:
    """The suite that these options of `fscale vm run` measure in a guest."""
    checked: list[Suite] = []

    @bundle("measured", RunOptions, "on")
    def take(*, measured: RunOptions) -> None:
        checked.append(run_in_guest(measured, suite, own).suite)

    run = typer.Typer(add_completion=False)
    run.command()(take)
    typer.main.get_command(run).main(list(arguments), standalone_mode=False)
    return checked[0]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--fs", "lanefs,ext4:2", "--cores", "1"], ["lanefs", "ext4:2"]),
        (["--fs=ext4:mount=data=journal,commit=1,tmpfs"], None),
        (["--set", "filesystems=['lanefs']"], ["lanefs"]),
        (["--cores", "1"], ["tmpfs", "ext4"]),
        (["--fs", "ext4", "--partitions", "2"], ["ext4", "ext4:2"]),
    ],
)
def test_the_file_systems_come_from_the_options_or_the_suite(
    tmp_path: Path, arguments: list[str], names: list[str] | None
) -> None:
    named = suite(tmp_path, filesystems=["tmpfs", "ext4"], media=["ram"])
    found = suite_in_guest(named, arguments, []).filesystems
    assert found == (names or ["ext4:mount=data=journal,commit=1", "tmpfs"])


@pytest.mark.parametrize("given", [["--set", "workers_per_cpu=2"], ["--set=workers_per_cpu=2"]])
def test_keys_that_are_set_are_those_of_the_suite(given: list[str]) -> None:
    assert suite_in_guest(QUICK, given, []).workers_per_cpu == 2


def test_files_and_places_of_the_guest_are_not_looked_for_here() -> None:
    files = ["--binary", "/control/b", "--dir", "/x"]
    assert suite_in_guest(QUICK, [*files, "--wait", "3"], []).media == ["dir"]


def test_a_file_system_that_only_the_guest_has_is_known_by_its_file(tmp_path: Path) -> None:
    for name in ("mine", "mine:2", "mine:mount=acl"):
        assert suite_in_guest(QUICK, ["--fs", name], [tmp_path / "mine.toml"]).filesystems
        with pytest.raises(FscaleError, match="unknown file system mine"):
            suite_in_guest(QUICK, ["--fs", name], [])


def test_applications_and_own_loads_are_known(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('title = "m"\noperation = "o"\n[command]\nrun = ["true"]\nops = 1\n')
    given = ["--workload", f"rocksdb,{mine}", "--option", "rocksdb.databases=4"]
    assert suite_in_guest(QUICK, given, []).workloads == ["rocksdb", str(mine)]
    with pytest.raises(FscaleError, match="databases"):
        suite_in_guest(QUICK, [*given, "--option", "rocksdb.databases=0"], [])


@pytest.mark.parametrize("option", ["--fs", "--media"])
def test_a_file_that_the_guest_does_not_have_is_refused(option: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('title = "m"\nkernel = "ext2"\nmkfs = ["mkfs.ext2", "{device}"]\n')
    if option == "--media":
        mine.write_text('title = "m"\nkind = "loop"\nsize = "1G"\n')
    for text in (str(mine), *([f"{mine}:mount=acl", f"tmpfs,{mine}"] if option == "--fs" else [])):
        with pytest.raises(FscaleError, match=r"mine.toml: a guest"):
            suite_in_guest(QUICK, [option, text], [])


WRONG = {
    "--worklaod DRBL": "--worklaod",
    "--kernle 6.1": "--kernle",
    "--on slurm": "--on",
    "stray": "stray",
    "--duration -1": "--duration",
    "--repetitions many": "--repetitions",
    "--workload DRBLX": "did you mean DRBL",
    "--workload DWRL --option DWRL.fill=abc": "whole number from 0 to 99",
    "--option DRBL.x=1": "no option x",
    "--option fill": "--option fill",
    "--fs ext5": "did you mean ext4",
    "--media floppy": "unknown medium floppy",
    "--mode foo": "buffered, direct",
    "--profile foo": "no profiler 'foo'",
    "--cores 0": "at least 1",
    "--set filesystems=5": "valid list",
    "--set filesystems=[5]": "valid string",
    "--set workers_per_cpu='x'": "workers_per_cpu",
    "--set nosuch=1": "nosuch",
}


@pytest.mark.parametrize("given", WRONG)
def test_what_the_guest_would_refuse_is_refused_here(given: str) -> None:
    usage_error: Any = typer.BadParameter.__base__
    with pytest.raises((FscaleError, usage_error)) as caught:
        suite_in_guest(QUICK, given.split(), [])
    said = getattr(caught.value, "format_message", caught.value.__str__)()
    assert WRONG[given] in said


KERNELS = ["--base", "kernel:6.1", "--new", "kernel:6.12"]
COMMANDS = {
    "vm run": ["vm", "run", "quick"],
    "ab": ["ab", *KERNELS],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_with_guests_refuses_it_before_a_boot(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boots(*_: object, **__: object) -> None:
        raise AssertionError("a guest is prepared")

    monkeypatch.setattr("fscale.commands.vm.run.start", boots)
    monkeypatch.setattr("fscale.ab.guest_plan.make_guests", boots)
    for wrong in (["--workload", "DRBLX"], ["--set", "nosuch=1"], ["--worklaod", "DRBL"]):
        words = [*COMMANDS[command], "--output", str(tmp_path / "out"), *wrong]
        done = CliRunner().invoke(app, words)
        assert isinstance(done.exception, FscaleError | SystemExit), done.exception
        assert getattr(done.exception, "code", None) == 2
        assert not (tmp_path / "out").exists()
