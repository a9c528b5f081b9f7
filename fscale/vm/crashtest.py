# SPDX-License-Identifier: GPL-2.0-only
"""The crash test, which runs inside the guest: `python3 -m fscale.vm.crashtest SPEC RESULT`.

It records a workload's writes with dm-log-writes and replays them up to each crash point. There it
mounts a snapshot (which recovers the file system), checks the fsync'd data, unmounts and runs fsck.
"""

import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import BinaryIO

from fscale.model.errors import FscaleError
from fscale.vm import crashload, devmapper, logwrites, snapshot
from fscale.vm.crashload import Model

# RAM disks: the file system, its write log, the replayed image, the changes of a mounted snapshot.
DATA, LOG, IMAGE, CHANGES = (Path(f"/dev/ram{n}") for n in range(4))
WHOLE, RECORDER, SNAPSHOT = "fscale-data", "fscale-log", "fscale-snap"
IN_TURN = "fscale-in-turn"
# dm-delay sends on at once what it does not delay; this is its shortest delay.
FLUSH_MILLISECONDS = 1
MOUNT = Path("/mnt")
CHUNK = 1 << 20
REMOUNT_SECONDS = 0.05
PLANTS = {
    "no-flush": "the device reports no volatile cache, so the kernel sends no flushes",
    "lost-flush": "the device reports every third flush as done but performs it later",
}


@dataclass(frozen=True)
class Spec:
    """The specification of the test; the host writes it as JSON."""

    filesystem: str
    """for mount -t"""
    mkfs: list[str]
    mount_options: list[str]
    fsck: list[str]
    """argv of a command that changes nothing and exits non-zero if it finds damage"""
    workload: str
    workers: int
    operations: int
    points: int
    seed: int
    size: int
    """size of the device in bytes, at most that of the RAM disks"""
    plant: str | None
    """the planted fault, one of PLANTS"""
    subsets: int = 0
    """random subsets to test at each point, of the writes that the next flush makes durable"""
    remounts: list[str] = field(default_factory=list)
    """mount options of remounts during the workload, used in rotation"""
    part: int = 0
    parts: int = 1
    """of the chosen points this guest tests the part-th (from 0) and each parts-th after it"""


@dataclass
class Result:
    """The result; the host reads it as JSON."""

    entries: int = 0
    flushes: int = 0
    possible: int = 0
    tested: int = 0
    subsets: int = 0
    first: dict[str, object] | None = None
    """the first point that fails: entry, what failed, and its text"""
    failing: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


def command(argv: Sequence[str]) -> None:
    """Run a command that must succeed; FscaleError with its output if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FscaleError(f"{' '.join(argv)} failed: {(done.stderr or done.stdout).strip()}")


@contextmanager
def map_device(name: str, table: str) -> Iterator[str]:
    """A device-mapper device, removed at the end."""
    try:
        path = devmapper.create(name, table)
    except OSError as error:
        raise FscaleError(f"no device {name}: {error}; the kernel's log has why") from None
    try:
        yield path
    except BaseException:
        # Report the first error only: that the device is busy follows from it.
        with suppress(OSError):
            devmapper.remove(name)
        raise
    try:
        devmapper.remove(name)
    except OSError as error:
        raise FscaleError(f"the device {name} is not removed: {error}") from None


@contextmanager
def recorder(device: str | Path, log: Path, size: int) -> Iterator[str]:
    """A device of `size` bytes whose writes go to `device`, and into `log` in a sound order.

    dm-log-writes takes the writes that a flush makes durable when the flush begins, and logs them
    when it ends. A second flush that begins later and ends earlier would be logged before them, and
    so would a write that relies on it. So flushes come one by one from dm-delay, which has a single
    thread, and `device` must end them before it returns to that, as brd does.
    """
    sectors = size // 512
    with map_device(RECORDER, f"0 {sectors} log-writes {device} {log}") as recorded:
        # for reads, writes, flushes; a write with FUA is not delayed
        delays = " ".join(f"{recorded} 0 {delay}" for delay in (0, 0, FLUSH_MILLISECONDS))
        with map_device(IN_TURN, f"0 {sectors} delay {delays}") as in_turn:
            yield in_turn


def last_messages(lines: int = 8) -> str:
    """The last lines of the kernel's log."""
    printed = subprocess.run(["dmesg"], capture_output=True, text=True, check=False).stdout
    return "\n".join(printed.splitlines()[-lines:])


def copy(source: Path, target: Path) -> None:
    """Copy a device to a fresh RAM disk, without the zeros."""
    with source.open("rb") as old, target.open("r+b") as new:
        position = 0
        while block := old.read(CHUNK):
            if block.count(0) != len(block):
                new.seek(position)
                new.write(block)
            position += len(block)
        new.flush()
        os.fsync(new.fileno())


def _worker(spec: Spec, number: int) -> None:
    def mark(done: int) -> None:
        devmapper.send(RECORDER, f"mark {number}:{done}")

    plan = crashload.operations(
        spec.seed, number, spec.operations, crashload.WORKLOADS[spec.workload]
    )
    crashload.work(MOUNT / f"w{number}", plan, mark)


def _remount(options: Sequence[str], workers: Sequence[BaseProcess]) -> None:
    """Remount with these options in rotation until the workers have ended, at least once."""
    for number in itertools.count():
        if not any(worker.is_alive() for worker in workers):
            break
        command(["mount", "-o", f"remount,{options[number % len(options)]}", str(MOUNT)])
        time.sleep(REMOUNT_SECONDS)
    if not number:
        raise FscaleError("the workload ended before the first remount; give more --points")


def record(spec: Spec) -> None:
    """Make the file system, copy it to IMAGE, run the workload on DATA with its writes in LOG."""
    with map_device(WHOLE, f"0 {spec.size // 512} linear {DATA} 0") as data:
        command([argument.replace("{device}", data) for argument in spec.mkfs])
        copy(Path(data), IMAGE)
    with recorder(DATA, LOG, spec.size) as device:
        if spec.plant == "no-flush":
            number = os.minor(Path(device).stat().st_rdev)
            Path(f"/sys/class/block/dm-{number}/queue/write_cache").write_text("write through")
        options = ",".join(spec.mount_options)
        command(["mount", "-t", spec.filesystem, "-o", options, device, str(MOUNT)])
        try:
            context = get_context("fork")
            workers = [context.Process(target=_worker, args=(spec, n)) for n in range(spec.workers)]
            for worker in workers:
                worker.start()
            if spec.remounts:
                _remount(spec.remounts, workers)
            for worker in workers:
                worker.join()
            if any(worker.exitcode != 0 for worker in workers):
                raise FscaleError("a worker of the workload failed; see its output above")
        finally:
            command(["umount", str(MOUNT)])


Add = Callable[[BinaryIO], None]
Examine = Callable[[Spec, Sequence[Model], Add | None], tuple[str, str] | None]


@contextmanager
def power_cut(spec: Spec, add: Add | None) -> Iterator[str]:
    """A snapshot of IMAGE as after a power cut; what is written to it is in CHANGES.

    `add` writes further data to the snapshot that the disk may hold.
    """
    snapshot.clear(CHANGES)
    with map_device(SNAPSHOT, snapshot.table(spec.size, IMAGE, CHANGES)) as device:
        if add:
            with Path(device).open("r+b") as changed:
                add(changed)
                changed.flush()
                os.fsync(changed.fileno())
        yield device


def examine(spec: Spec, models: Sequence[Model], add: Add | None = None) -> tuple[str, str] | None:
    """Mount and check it after a power cut; (what failed, its text), or None if all is well."""
    with power_cut(spec, add) as device:
        options = ",".join(spec.mount_options)
        mount = ["mount", "-t", spec.filesystem, "-o", options, device, str(MOUNT)]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            printed = last_messages()
            again = subprocess.run(mount, capture_output=True, text=True, check=False)
            if again.returncode == 0:
                command(["umount", str(MOUNT)])
            ended = "fails as well" if again.returncode else "succeeds"
            return "mount", f"{done.stderr.strip()}\n{printed}\na second mount {ended}"
        try:
            faults = [
                fault
                for number, model in enumerate(models)
                for fault in model.faults(MOUNT / f"w{number}")
            ]
        except OSError as error:
            faults = [f"reading back failed: {error}"]
        finally:
            command(["umount", str(MOUNT)])
        if faults:
            return "check", "\n".join(faults)
        argv = [argument.replace("{device}", device) for argument in spec.fsck]
        checked = subprocess.run(argv, capture_output=True, text=True, check=False)
        if checked.returncode != 0:
            return "fsck", (checked.stdout + checked.stderr).strip()
    return None


def pick_spaced(points: list[int], most: int) -> set[int]:
    """At most `most` of the points, evenly spaced, including the last one."""
    if len(points) <= most:
        return set(points)
    return {points[(number + 1) * len(points) // most - 1] for number in range(most)}


@dataclass
class Replay:
    """The state of a replay: the position of the image, and the data promised as durable."""

    spec: Spec
    result: Result
    log: BinaryIO
    image: BinaryIO
    models: list[Model]
    examine: Examine
    cached: list[logwrites.LogEntry] = field(default_factory=list)
    """entries since the last flush"""
    flushes: int = 0

    def step(self, entry: logwrites.LogEntry, chosen: bool) -> None:
        """Replay the next entry; if the point is chosen, test the states that a cut may leave."""
        self.cached.append(entry)
        if entry.durable:
            self.flushes += 1
            if chosen:
                self._parts(entry)
            if self.spec.plant != "lost-flush" or self.flushes % 3:
                for written in self.cached:
                    logwrites.apply(self.log, written, self.image)
                self.cached.clear()
        worker, colon, done = (entry.label or "").partition(":")
        if colon:
            self.models[int(worker)].advance(int(done))
        if chosen:
            self.result.tested += 1
            self._test(entry, "", None)

    def _parts(self, entry: logwrites.LogEntry) -> None:
        """Test cuts during the flush, when the disk has some of the pending writes."""
        group = logwrites.under_way(self.cached)
        for number in range(self.spec.subsets if group else 0):
            seed = f"{self.spec.seed}/{entry.index}/{number}"

            def add(device: BinaryIO, seed: str = seed) -> None:
                logwrites.apply_some(self.log, group, device, random.Random(seed))

            self.result.subsets += 1
            self._test(entry, f" with part {number} of the writes before it", add)

    def _test(self, entry: logwrites.LogEntry, how: str, add: Add | None) -> None:
        self.image.flush()
        os.fsync(self.image.fileno())
        if failure := self.examine(self.spec, self.models, add):
            self.result.failing += 1
            what, text = failure
            first = {"entry": entry.index, "what": what + how, "text": text}
            self.result.first = self.result.first or first


def replay(spec: Spec, result: Result, examine: Examine = examine) -> None:
    """Replay the log and test the state after each cut; fills `result`."""
    kinds = crashload.WORKLOADS[spec.workload]
    models = [
        Model(list(crashload.operations(spec.seed, n, spec.operations, kinds)))
        for n in range(spec.workers)
    ]
    shown = time.monotonic()
    with LOG.open("rb") as log, IMAGE.open("r+b") as image:
        entries = logwrites.read_log(log)
        points = logwrites.crash_points(entries)
        chosen = set(sorted(pick_spaced(points, spec.points))[spec.part :: spec.parts])
        result.entries, result.possible = len(entries), len(points)
        result.flushes = sum(entry.durable for entry in entries)
        state = Replay(spec, result, log, image, models, examine)
        for entry in entries:
            state.step(entry, entry.index in chosen)
            if time.monotonic() - shown > 5:
                shown = time.monotonic()
                print(f"{result.tested}/{len(chosen)} points, {result.failing} fail", flush=True)


def main(spec_path: Path, result_path: Path) -> None:
    """Run the test that `spec_path` describes and write the result."""
    spec = Spec(**json.loads(spec_path.read_text()))
    result = Result()
    kib = spec.size >> 10
    command(["modprobe", "brd", "rd_nr=4", f"rd_size={kib}", "max_part=0"])
    started = time.monotonic()
    record(spec)
    result.seconds["record"] = round(time.monotonic() - started, 1)
    print(f"recorded in {result.seconds['record']} s", flush=True)
    started = time.monotonic()
    replay(spec, result)
    result.seconds["replay"] = round(time.monotonic() - started, 1)
    result_path.write_text(json.dumps(asdict(result), indent=1) + "\n")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except FscaleError as error:
        sys.exit(f"crash test: {error}")
