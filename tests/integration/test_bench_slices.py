# SPDX-License-Identifier: GPL-2.0-only
"""`fscale-bench --slice`: it works when it is asked, and only then."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import bench_support as bench
import pytest
from bench_support import mounted, needs_root

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

    def ask(self) -> list[str]:
        os.write(self._ask, b"s")
        return self._answers.readline().split()

    def take(self) -> tuple[int, float, float, str]:
        ops, seconds, cpu, settled, end = self.ask()
        assert float(settled) == 0
        return int(ops), float(seconds), float(cpu), end

    def end(self):
        os.close(self._ask)
        return bench.finish(self.process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """A bench that a failed test leaves behind would keep its directory busy."""
        self.process.kill()
        self.process.wait()


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


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_is_done_between_turns(fast: Path, count: int) -> None:
    side = Slices("DRBL", fast / "a", "--slice", "0.02", count=count)
    side.take()
    workers = bench.children(side.process.pid)
    assert len(workers) == count
    used = []
    for _ in range(2):  # before the first look they go back to sleep
        time.sleep(0.2)
        used.append([cpu_ns(worker) for worker in workers])
    assert used[0] == used[1]
    side.take()
    for worker, before in zip(workers, used[1], strict=True):
        assert cpu_ns(worker) > before + 5_000_000
    side.end()


def test_the_end_of_the_stock_is_said(fast: Path) -> None:
    more = ("--slice", "0.05", "--duration", "0.2", "--max-stock", "200", "--min-window", "0.001")
    side = Slices("MWCL", fast / "a", *more)
    assert any(side.take()[3] == "exhausted" for _ in range(3))
    assert side.end()[1].end in ("time", "exhausted")


@needs_root
@pytest.mark.root
def test_a_turn_that_is_settled_leaves_nothing_to_write(tmp_path: Path) -> None:
    """ext4 allocates when it writes back: after a settled turn no block waits for that."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(8 << 30)  # a turn that the machine draws out must not use up the stock
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    with mounted(tmp_path / "m", "-o", "loop", str(image)) as mount:
        device = Path(os.path.realpath(f"/sys/dev/block/{_device(mount)}")).name
        waiting = Path(f"/sys/fs/ext4/{device}/delayed_allocation_blocks")
        for more, left in (((), True), (("--settle",), False)):
            turns = ("--slice", "0.05", *more)
            with Slices("DWAL", mount / f"dir{left}", *turns) as side:
                settled = []
                for _ in range(3):
                    *_, seconds, end = side.ask()
                    assert end == "time"
                    settled.append(float(seconds))
                    assert (int(waiting.read_text()) > 0) is left
                assert all(seconds > 0 for seconds in settled) is not left
                code, out = side.end()
            assert (code, out.status) == (0, "ok")


def _device(path: Path) -> str:
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def test_settling_comes_after_slices(fast: Path) -> None:
    argv = bench.argv("DRBL", fast / "a", "--settle")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--settle needs --slice" in done.stderr


def test_slices_need_somebody_who_asks(fast: Path) -> None:
    argv = bench.argv("DRBL", fast / "a", "--slice", "0.05")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--slice needs --sync-fds" in done.stderr
