# SPDX-License-Identifier: GPL-2.0-only
"""set=FILE=VALUE: it holds while cells are measured, is recorded, and is put back."""

from pathlib import Path

import pytest

from fscale.model.errors import Exit
from fscale.model.store import Store
from tests.support.files import write_program
from tests.support.runner import fake_bench, fscale, suite

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("unchanged")]

WRITEBACK = Path("/proc/sys/vm/dirty_writeback_centisecs")
AHEAD = "/sys/block/{name}/queue/read_ahead_kb"


def looking(tmp_path: Path) -> Path:
    """A microbenchmark that notes what the files say while it runs."""
    probe = tmp_path / "looking-bench"
    look = (
        'import glob; print(open("/proc/sys/vm/dirty_writeback_centisecs").read().strip(), '
        '*(open(f).read().strip() for f in glob.glob("/sys/block/loop*/queue/read_ahead_kb")), '
        f'file=open("{tmp_path}/seen", "a"))'
    )
    text = fake_bench(tmp_path).read_text()
    assert 'if act == "late":' in text
    return write_program(probe, text.replace('if act == "late":', f'{look}\nif act == "late":'))


def test_they_hold_for_their_file_system_alone(tmp_path: Path) -> None:
    before = WRITEBACK.read_text()
    fs = f"ext4:set={WRITEBACK}=731:set={AHEAD}=52"
    given = ["--output", tmp_path / "out", "--binary", looking(tmp_path)]
    done = fscale("run", suite(tmp_path, filesystems=["ext4", fs], repetitions=2), *given)
    assert done.returncode == Exit.GOOD, done.stderr
    seen = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    assert len(seen) == 4
    assert (
        sorted(("731" in line, "52" in line) for line in seen)
        == [(False,) * 2] * 2 + [(True,) * 2] * 2
    )
    assert WRITEBACK.read_text() == before
    run = Store(tmp_path / "out").load_run()
    assert run
    recorded = [described["settings"] for described in run.filesystems.values()]
    assert sorted(recorded, key=len) == [{}, {str(WRITEBACK): "731", AHEAD: "52"}]


def test_a_comparison_ends_too(tmp_path: Path) -> None:
    sides = ["--base", "tmpfs", "--new", "ext4:set=/sys/block/{name}/queue/scheduler=no-such"]
    done = fscale("ab", *sides, "--workload", "DRBL", "--output", tmp_path / "out")
    assert done.returncode == Exit.USAGE, done.stdout + done.stderr
    assert "scheduler" in done.stderr
    assert not list(tmp_path.glob("out/cells/*"))


@pytest.mark.parametrize(
    ("fs", "says"),
    [
        ("ext4:set=/proc/sys/vm/no_such_file=1", "no_such_file"),
        ("ext4:set=/proc/sys/kernel/random/boot_id=1", "boot_id"),
        ("ext4:set=/sys/block/{name}/queue/scheduler=no-such-scheduler", "scheduler"),
        ("ext4:set=/sys/block/{name}/no_such_file=1", "no_such_file"),
        ("ext4:set=/proc/sys/vm/compact_memory=1", "compact_memory"),
        ("tmpfs:set=/sys/block/{name}/queue/read_ahead_kb=1", "device"),
    ],
)
def test_what_cannot_be_set_ends_the_run_before_a_cell(fs: str, says: str, tmp_path: Path) -> None:
    given = ["--output", tmp_path / "out", "--binary", fake_bench(tmp_path)]
    done = fscale("run", suite(tmp_path, filesystems=[fs]), *given)
    assert done.returncode == Exit.USAGE, done.stdout + done.stderr
    assert says in done.stderr
    assert not list(tmp_path.glob("out/cells/*"))


def test_a_side_that_sets_what_both_see_is_measured_in_whole_repetitions(tmp_path: Path) -> None:
    before = WRITEBACK.read_text()
    sides = ["--base", "ext4", "--new", f"ext4:set={WRITEBACK}=731", "--cores", "1"]
    given = ["--workload", "DRBL", "--duration", "0.1", "--repetitions", "8"]
    argv = ["ab", *sides, *given, "--output", tmp_path / "out"]
    assert fscale(*argv, "--slices").returncode == Exit.USAGE
    done = fscale(*argv)
    assert done.returncode in (Exit.GOOD, Exit.FAILED), done.stderr
    cells = Store(tmp_path / "out").cells()
    assert len(cells) == 16
    assert not any(cell.slices for cell in cells)
    assert WRITEBACK.read_text() == before
