# SPDX-License-Identifier: GPL-2.0-only
"""`fscale-bench --slice`: it works when it is asked, and only then."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import bench_support as bench
import pytest

pytestmark = pytest.mark.live


class Slices:
    """A bench that takes turns."""

    def __init__(self, workload: str, directory: Path, *more: str, count: int = 1) -> None:
        requests, self._ask = os.pipe()
        answers, theirs = os.pipe()
        argv = bench.argv(workload, directory, *more, count=count)
        argv += ["--sync-fds", f"{requests},{theirs}"]
        self.process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, text=True, pass_fds=(requests, theirs)
        )
        os.close(requests)
        os.close(theirs)
        self._answers = os.fdopen(answers)
        assert self._answers.readline() == "ready\n"

    def take(self) -> tuple[int, float, float, str]:
        os.write(self._ask, b"s")
        ops, seconds, cpu, end = self._answers.readline().split()
        return int(ops), float(seconds), float(cpu), end

    def end(self):
        os.close(self._ask)
        return bench.finish(self.process)


def cpu_ns(pid: int) -> int:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


@pytest.fixture
def fast() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield Path(directory)


def test_answers_add_up(fast: Path) -> None:
    side = Slices("DWOL", fast / "a", "--slice", "0.05")
    taken = [side.take() for _ in range(6)]
    code, out = side.end()
    assert (code, out.status) == (0, "ok")
    good = [turn for turn in taken if turn[1]]
    assert len(good) >= 3  # a busy machine may leave a turn's edges uncertain
    assert out.ops == sum(ops for ops, *_ in good)
    assert out.seconds == pytest.approx(sum(seconds for _, seconds, *_ in good), rel=1e-6)
    assert [w.seconds for w in out.windows] == pytest.approx([t[1] for t in good])
    assert all(0 < cpu <= 1.5 * 0.05 and end == "time" for _, _, cpu, end in good)


def test_nothing_is_done_between_turns(fast: Path) -> None:
    side = Slices("DRBL", fast / "a", "--slice", "0.02")
    side.take()
    (worker,) = bench.children(side.process.pid)
    used = []
    for _ in range(2):  # before the first look it goes back to sleep
        time.sleep(0.2)
        used.append(cpu_ns(worker))
    assert used[0] == used[1]
    side.take()
    assert cpu_ns(worker) > used[1] + 5_000_000
    side.end()


def test_the_end_of_the_stock_is_said(fast: Path) -> None:
    more = ("--slice", "0.05", "--duration", "0.2", "--max-stock", "200", "--min-window", "0.001")
    side = Slices("MWCL", fast / "a", *more)
    assert any(side.take()[3] == "exhausted" for _ in range(3))
    assert side.end()[1].end in ("time", "exhausted")


def test_slices_need_somebody_who_asks(fast: Path) -> None:
    argv = bench.argv("DRBL", fast / "a", "--slice", "0.05")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--slice needs --sync-fds" in done.stderr
