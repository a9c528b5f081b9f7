# SPDX-License-Identifier: GPL-2.0-only
"""Files of the kernel that are set while a file system is mounted, and put back."""

from pathlib import Path

import pytest

from fscale.model.errors import FscaleError
from fscale.model.kernelfile import same_value, value_in_effect
from fscale.runner.machine import kernelsettings
from fscale.runner.machine.changes import KernelFile, NotUndone
from fscale.runner.machine.journal import Journal, recover
from fscale.system.executor import DryExecutor, Executor


@pytest.mark.parametrize(
    ("text", "value"),
    [("none [mq-deadline] bfq\n", "mq-deadline"), ("[always] never", "always"),
     ("4096\t8 16\n", "4096 8 16"), ("1\n", "1"), ("", "")],
)  # fmt: skip
def test_the_value_in_force(text: str, value: str) -> None:
    assert value_in_effect(text) == value


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [("Y\n", "1", True), ("N", "off", True), ("0x10", "16", True), ("none [bfq]", "bfq", True),
     ("10 20", "10\t20\n", True), ("1", "2", False), ("none [bfq]", "none", False)],
)  # fmt: skip
def test_one_setting_in_two_spellings(one: str, other: str, equal: bool) -> None:
    assert same_value(one, other) == equal


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "dirty_ratio"
    path.write_text("20\n")
    return path


def test_it_holds_inside_and_is_put_back(tmp_path: Path, file: Path) -> None:
    journal = Journal(tmp_path / "journal", Executor())
    with kernelsettings.applied("ext4", {str(file): "5"}, journal):
        assert file.read_text() == "5"
    assert file.read_text() == "20"


def test_what_a_killed_run_set_is_put_back(tmp_path: Path, file: Path) -> None:
    journal = Journal(tmp_path / "journal", Executor())
    journal.apply(KernelFile(path=file, value="5", before="20"))
    journal.close()
    told, failures = recover(tmp_path)
    assert (len(told), failures, file.read_text()) == (1, [], "20")


def test_a_file_that_went_with_its_device_has_nothing_left(tmp_path: Path, file: Path) -> None:
    journal = Journal(tmp_path / "journal", Executor())
    with kernelsettings.applied("ext4", {str(file): "5"}, journal):
        file.unlink()
    assert not journal.undo_all()


class Deaf(Executor):
    """The kernel takes what is written, and keeps what it had."""

    def write(self, path: Path, text: str) -> None:
        pass


@pytest.mark.parametrize(("value", "heard"), [("5", False), ("0x14", True), ("20", True)])
def test_a_value_without_effect_is_refused(
    value: str, heard: bool, tmp_path: Path, file: Path
) -> None:
    journal = Journal(tmp_path / "journal", Deaf())
    if heard:
        with kernelsettings.applied("ext4", {str(file): value}, journal):
            pass
    else:
        with (
            pytest.raises(FscaleError, match="no effect") as caught,
            kernelsettings.applied("ext4", {str(file): value}, journal),
        ):
            pass
        assert caught.value.code == 2
    assert not journal.undo_all()


def test_what_cannot_be_put_back_is_said(tmp_path: Path, file: Path) -> None:
    setting = KernelFile(path=file, value="5", before="20")
    setting.apply(Executor())
    with pytest.raises(NotUndone):
        setting.undo(Deaf())


@pytest.mark.parametrize("content", [None, "two\nlines\n"])
def test_only_a_file_with_one_setting_is_set(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "file"
    if content:
        path.write_text(content)
    journal = Journal(tmp_path / "journal", Executor())
    with (
        pytest.raises(FscaleError) as caught,
        kernelsettings.applied("ext4", {str(path): "5"}, journal),
    ):
        pass
    assert str(path) in str(caught.value)
    assert not journal.path.exists()


def test_a_dry_run_says_both_writes(tmp_path: Path, file: Path) -> None:
    shown: list[str] = []
    journal = Journal(tmp_path / "journal", DryExecutor(shown.append))
    with kernelsettings.applied("ext4", {str(file): "5", "/sys/{name}": "1"}, journal):
        assert file.read_text() == "20\n"
    assert [line.split()[1] for line in shown if str(file) in line] == ["5", "20"]
