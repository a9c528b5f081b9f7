# SPDX-License-Identifier: GPL-2.0-only
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.runner.machine.changes import Change, NotUndone, TempDir, mountpoints
from fscale.runner.machine.journal import Journal, exclusive, recover
from fscale.system.executor import DryExecutor, Executor


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_change_is_on_the_disk_before_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal", Executor())
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)

    def apply(self: Change, do: Executor) -> None:
        assert lines(tmp_path / "journal")[-1]["seq"] == 1
        assert synced[-1] == str(tmp_path / "journal")
        raise OSError("the change fails")

    monkeypatch.setattr(TempDir, "apply", apply)
    with pytest.raises(OSError, match="the change fails"):
        journal.apply(TempDir(path=tmp_path / "a"))


def test_undone_in_reverse_and_the_file_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal", Executor())
    for name in "abc":
        journal.apply(TempDir(path=tmp_path / name))
    order: list[str] = []
    undo = TempDir.undo
    monkeypatch.setattr(
        TempDir, "undo", lambda self, do: (order.append(self.path.name), undo(self, do))
    )
    assert journal.undo_all() == []
    assert order == ["c", "b", "a"]
    assert list(tmp_path.iterdir()) == []


def test_recover_undoes_what_a_killed_run_left(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", Executor())
    with journal.change(TempDir(path=tmp_path / "finished")):
        pass
    journal.apply(TempDir(path=tmp_path / "left"))
    (tmp_path / "left" / "file").write_text("x")
    journal.close()  # as if killed here
    undone, failures = recover(tmp_path)
    assert failures == []
    assert len(undone) == 1
    assert "left" in undone[0]
    assert not (tmp_path / "left").exists()
    assert recover(tmp_path) == ([], [])


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", Executor())
    journal.apply(TempDir(path=tmp_path / "a"))
    journal.close()
    with (tmp_path / "journal").open("a") as file:
        file.write('{"seq": 2, "do": {"kind": "temp_d')
    assert recover(tmp_path)[1] == []
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "journal").exists()


def test_a_damaged_journal_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text('{"seq": 1, "do": {"kind": "reboot"}}\n')
    with pytest.raises(FscaleError, match="is damaged"):
        recover(tmp_path)
    assert (tmp_path / "journal").exists()


def test_what_cannot_be_undone_stays_and_the_rest_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal", Executor())
    for name in "abc":
        journal.apply(TempDir(path=tmp_path / name))
    undo = TempDir.undo

    def stubborn(self: TempDir, do: Executor) -> None:
        if self.path.name == "b":
            raise NotUndone("b is busy")
        undo(self, do)

    monkeypatch.setattr(TempDir, "undo", stubborn)
    assert journal.undo_all() == ["b is busy"]
    assert not (tmp_path / "a").exists()
    journal.close()
    monkeypatch.undo()
    assert recover(tmp_path)[1] == []
    assert not (tmp_path / "b").exists()


def test_one_at_a_time(tmp_path: Path) -> None:
    with (
        exclusive(tmp_path),
        pytest.raises(FscaleError, match=rf"another fscale \(pid {os.getpid()}, user \S+, since "),
        exclusive(tmp_path),
    ):
        pass
    with exclusive(tmp_path):
        pass


def test_a_held_machine_names_the_command_its_user_and_the_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = f"""if True:
        from pathlib import Path
        from fscale.runner.machine.journal import exclusive
        with exclusive(Path({str(tmp_path)!r})):
            print("held", flush=True)
            input()
    """
    argv = [sys.executable, "-c", code, "/opt/fscale", "run", "quick", "--fs", "ext4"]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=paths.ROOT
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(FscaleError) as caught, exclusive(tmp_path, 0.2):
            pass
        other.communicate("\n")
    user = re.escape(Path(f"/proc/{os.getpid()}").owner())
    holder = rf"another fscale \(pid {other.pid}, user {user}, since \d\d \w+ \d\d:\d\d:\d\d: "
    holder += r"run quick --fs ext4\)"
    assert re.match(holder, str(caught.value))
    assert re.match(rf"waiting up to 0.2 s for {holder}\n", capsys.readouterr().err)


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    shown: list[str] = []
    journal = Journal(tmp_path / "journal", DryExecutor(shown.append))
    with journal.change(TempDir(path=tmp_path / "a")):
        assert not (tmp_path / "a").exists()
    assert journal.undo_all() == []
    assert shown == [f"mkdir -p {tmp_path}/a", f"rm -rf {tmp_path}/a"]
    assert list(tmp_path.iterdir()) == []


def test_mount_points_with_blanks_and_other_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        "1 0 0:1 / /a\\040b/\u00e9t\u00e9 rw - tmpfs t rw\n2 1 0:2 / /a\\040bc rw - tmpfs t rw\n"
    )
    monkeypatch.setattr(Path, "read_bytes", lambda self: lines.encode())
    assert mountpoints(Path("/a b")) == [Path("/a b/\u00e9t\u00e9")]


@pytest.mark.parametrize("umask", [0o077, 0])
def test_the_state_is_open_to_read_and_closed_to_write(umask: int, tmp_path: Path) -> None:
    """Loads of other users pass through it; who could write to the journal could undo anything."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)  # as an earlier version left it
    before = os.umask(umask)
    try:
        with exclusive(state):
            journal = Journal(state / "journal", Executor())
            journal.apply(TempDir(path=state / "mnt" / "work"))
            modes = {path.name: path.stat().st_mode & 0o777 for path in (state, *state.rglob("*"))}
            assert journal.undo_all() == []
    finally:
        os.umask(before)
    assert {modes[name] for name in ("state", "mnt", "work")} == {0o755}
    assert not (modes["journal"] | modes["lock"]) & 0o022
