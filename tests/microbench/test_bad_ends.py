# SPDX-License-Identifier: GPL-2.0-only
"""The bad ends of each workload of the suite `today`: no file, no room, a dead worker."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fscale.model.catalogue import load_suite
from fscale.model.paths import SUITES
from tests.support import bench

pytestmark = pytest.mark.live

TODAY = load_suite(SUITES / "today.toml").workloads
# They look up no path, or one that is not there anyhow.
BY_DESCRIPTOR = (
    "fallocate", "fault", "fcntl_lock", "flock", "fstat", "fuse", "missing", "statmount", "syncfs",
    "uring_write", "write_stat",
)  # fmt: skip
# They take a block or an inode in each operation.
ALLOCATE = (
    "copy_up", "create_fsync", "create_unlink", "fallocate", "link", "mkdir", "symlink", "tmpfile",
    "whiteout",
)  # fmt: skip
# A small stock, for the time until a window begins.
LONG = ("--duration", "60", "--warmup", "0.02", "--max-stock", "2000", "--min-window", "0.0001")
QUICK = ("--duration", "0.3", "--warmup", "0.02")


def those(prefixes: tuple[str, ...], wanted: bool = True) -> list:
    return bench.parameters(w for w in TODAY if w.startswith(prefixes) == wanted)


@contextmanager
def small(where: Path, options: str) -> Iterator[Path]:
    """A tmpfs that is soon full."""
    with bench.mounted(where, "-t", "tmpfs", "-o", options, "fscale-test") as place:
        yield place


@pytest.mark.parametrize("workload", those(BY_DESCRIPTOR, wanted=False))
def test_a_path_that_goes_away(workload, tmp_path):
    process, _ = bench.start(workload, tmp_path / "d", *LONG)
    move_away(tmp_path / "d")
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.status, out.end) == (1, "error", "error")
    assert (out.error.name, out.error.worker) == ("ENOENT", 0)
    assert out.error.path.startswith(str(tmp_path / "d"))
    assert out.error.message.startswith(f"{out.error.call} {out.error.path}: ")


@pytest.mark.parametrize("workload", those(BY_DESCRIPTOR))
def test_an_open_file_whose_path_goes_away(workload, tmp_path):
    """Its operations do not depend on it."""
    process, _ = bench.start(workload, tmp_path / "d", *QUICK)
    move_away(tmp_path / "d")
    code, out = bench.finish(process)
    assert (code, out.status, out.error) == (0, "ok", None)


def move_away(directory: Path) -> None:
    """At once, so that no operation makes a directory anew halfway."""
    for name in ("0", "share"):
        if (directory / name).exists():
            (directory / name).rename(directory / f"{name}.away")


@bench.needs_root
@pytest.mark.parametrize("workload", [w for w in TODAY if w != "statmount_shared"])
def test_no_room_for_the_set_up(workload, tmp_path):
    """The two inodes are those of the root and of the directory under test."""
    with small(tmp_path / "m", "nr_inodes=2") as place:
        code, out = bench.run(workload, place / "d", *LONG)
        assert (code, out.status, out.end) == (1, "error", "no_space")
        assert out.error.name == "ENOSPC"


@bench.needs_root
@pytest.mark.parametrize("workload", those(ALLOCATE))
def test_no_room_any_more(workload, tmp_path):
    with small(tmp_path / "m", "size=4m,nr_inodes=1000") as place:
        process, _ = bench.start(workload, place / "d", *LONG)
        fill_up(place, process)
        code, out = bench.finish(process)
        assert (code, out.status, out.end) == (1, "error", "no_space")
        assert (out.error.name, out.error.worker) == ("ENOSPC", 0)


def fill_up(place: Path, process: subprocess.Popen[str]) -> None:
    """Take each block and inode that is free, until the run has none."""
    number = 0
    with (place / "full").open("ab", buffering=0) as file:
        while process.poll() is None:
            with suppress(OSError):
                file.write(bytes(65536))
            with suppress(OSError):
                (place / f"full-{number}").touch()
            number += 1


@pytest.mark.parametrize("workload", bench.parameters(TODAY))
def test_a_dead_worker(workload, tmp_path):
    process, workers = bench.start(workload, tmp_path / "d", *LONG)
    os.kill(workers[-1], signal.SIGKILL)
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.status, out.end) == (1, "error", "error")
    assert (out.error.call, out.error.worker) == ("waitpid", len(workers) - 1)
    assert "signal 9" in out.error.message
    assert bench.wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
