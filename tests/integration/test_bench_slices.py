# SPDX-License-Identifier: GPL-2.0-only
"""`fscale-bench --slice`: it works when it is asked, and only then."""

import os
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest

from fscale.runner.latency import by_turn
from tests.support import bench
from tests.support.bench import mounted, needs_root

pytestmark = pytest.mark.live


class Slices:
    """A bench that takes turns."""

    def __init__(self, workload: str, directory: Path, *more: str, count: int = 1) -> None:
        self.process, self._answers, self._ask = bench.start_held(
            workload, directory, *more, count=count
        )

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


LOG = """\
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	static int log = -1;
	uint64_t entry[2] = { now() };
	char name[16];

	if (prctl(PR_GET_NAME, name) || strcmp(name, "fscale-run"))
		return syscall(SYS_pread64, fd, buf, size, offset);
	if (log < 0)
		log = open(getenv("READS_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0644);
	usleep((useconds_t)atoi(getenv("READS_US")));
	entry[1] = now();
	return write(log, entry, sizeof(entry)) < 0 ? -1 : (ssize_t)size;
}
"""


@pytest.fixture(scope="module")
def slow_reads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library in which a worker's pread() sleeps, and writes down from when to when."""
    return bench.preloaded(tmp_path_factory.mktemp("reads") / "reads.so", LOG)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("milliseconds", [3.4, 5.4])
def test_a_rate_does_not_depend_on_how_operations_fit_into_a_turn(
    milliseconds: float,
    count: int,
    fast: Path,
    slow_reads: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All workers begin at once: 2 or 1 operations of each end between 1 and 10 ms of a turn.

    Counted like that, the rate would be 0.76 or 0.6 of what it is.
    """
    log = fast / "log"
    monkeypatch.setenv("LD_PRELOAD", str(slow_reads))
    monkeypatch.setenv("READS_LOG", str(log))
    monkeypatch.setenv("READS_US", str(int(1000 * milliseconds)))
    more = ("--slice", "0.01", "--min-window", "0.005")
    with Slices("DRBL", fast / "a", *more, count=count) as side:
        log.unlink(missing_ok=True)
        turns = [side.take() for _ in range(30)]
        side.end()
    told = sum(ops for ops, *_ in turns) / sum(seconds for _, seconds, *_ in turns)
    numbers = memoryview(log.read_bytes()).cast("Q").tolist()
    reads = [end - start for start, end in zip(numbers[::2], numbers[1::2], strict=True)]
    assert told == pytest.approx(count * 1e9 * len(reads) / sum(reads), rel=0.12)


def cpu_ns(pid: int) -> int:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def test_answers_add_up(fast: Path) -> None:
    side = Slices("DWOL", fast / "a", "--slice", "0.05")
    taken = [side.take() for _ in range(6)]
    code, out = side.end()
    assert (code, out.status) == (0, "ok"), out.reason
    good = [turn for turn in taken if turn[1]]
    assert len(good) >= 3  # a busy machine may leave a turn's edges uncertain
    assert out.ops == sum(ops for ops, *_ in good)
    assert out.seconds == pytest.approx(sum(seconds for _, seconds, *_ in good), rel=1e-6)
    assert [w.seconds for w in out.windows] == pytest.approx([t[1] for t in good])
    assert all(0 < cpu <= 1.5 * 0.05 and end == "time" for _, _, cpu, end in good)


@pytest.mark.parametrize("workload", ["DRBL", "DWSL"])
def test_each_turn_has_the_latencies_of_all_its_operations(fast: Path, workload: str) -> None:
    """With the one that is under way when the turn closes, which is often a long one."""
    (fast / "l").mkdir()
    more = ("--slice", "0.05", "--latency", str(fast / "l"))
    side = Slices(workload, fast / "a", *more, count=2)
    taken = {number: side.take() for number in range(1, 6)}
    code, out = side.end()
    assert (code, out.status) == (0, "ok"), out.reason
    good = {number: ops for number, (ops, seconds, *_) in taken.items() if seconds}
    found = by_turn(fast / "l" / out.latency.turns)
    assert {number: sum(own.values()) for number, own in found.items()} == good
    assert sum(out.latency.samples) == out.ops == sum(good.values())
    assert out.latency.dropped == [0, 0]
    for number, own in found.items():
        spent = sum(nanoseconds * count for nanoseconds, count in own.items()) / 1e9
        assert spent < 2 * 1.1 * taken[number][1]


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
            assert (code, out.status) == (0, "ok"), out.reason


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
