# SPDX-License-Identifier: GPL-2.0-only
"""One journal that many share: its modes, and that none of those who wait for it waits for ever."""

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    children,
    equal,
    load_ends,
    long_test,
    run,
)
from tests.lanefs.functions.loop import fsck, loop_device, mounted, slow_device
from tests.lanefs.functions.nowait import cgroups
from tests.lanefs.functions.traced import traced

MODES = ("concurrent", "parallel", "serial")
SECONDS = 6.0
# A rename asks for three times the credits of a creation, in each domain; on an idle machine one
# takes a millisecond or two.
LONGEST = 10.0
MANY = 64
ROUNDS = 2
QUOTA_SECONDS = 4.0
QUOTA_ROUNDS = 3
QUOTAS = ("max", "2000", "1000")
"""microseconds of a period of 100 ms"""
QUOTA_WORK = 0.0005
"""seconds of CPU time between two fsyncs of who has a quota"""
SYNCS = 200
MANY_DOMAINS = 8


def _names(directory: Path, end: float) -> int:
    """Create, rename and remove until then; how many names are left."""
    directory.mkdir()
    left = 0
    for n in range(1_000_000):
        if time.monotonic() >= end:
            break
        path = directory / f"f{n}"
        path.touch()
        if n % 2:
            path.rename(directory / f"r{n}")
        if n % 3:
            (directory / f"{'r' if n % 2 else 'f'}{n}").unlink()
        else:
            left += 1
        if n % 50 == 0:
            os.sync()
    return left


@long_test
def the_journals_mode_is_changed_under_load(place: Place) -> None:
    """By remounts, again and again, on one domain; what was done is there, and sound."""
    place.own_lanefs("the option is lanefs's")
    with loop_device(place, 100, domains=1) as (device, _):
        with mounted(place, device) as mount:
            end = load_ends(SECONDS)

            def work(number: int) -> None:
                if number:
                    left = _names(mount / f"d{number}", end)
                    (mount / f"left{number}").write_text(str(left))
                    return
                changes = 0
                # Through all modes, also where a remount takes seconds (a guest with KCSAN).
                while time.monotonic() < end or changes < len(MODES):
                    run("mount", "-o", f"remount,journal={MODES[changes % len(MODES)]}", str(mount))
                    changes += 1

            children(6, work)
        with mounted(place, device) as mount:
            for number in range(1, 6):
                left = int((mount / f"left{number}").read_text())
                equal(len(os.listdir(mount / f"d{number}")), left, "names")
        fsck(place, device)


@long_test
def renames_are_not_overtaken_for_ever(place: Place) -> None:
    """Between all domains, with the smallest journals, while others create as fast as they can."""
    place.own_lanefs("the size of the journal is lanefs's")
    for mode in MODES:
        with loop_device(place, 100, domains=2) as (device, _):
            with mounted(place, device, f"journal={mode}", "placement=roundrobin") as mount:
                _renames_among_creations(mount)
            fsck(place, device)


def _renames_among_creations(mount: Path) -> None:
    for n in range(4):
        (mount / f"p{n}").mkdir()
    (mount / "p0" / "moved").touch()
    end = load_ends(SECONDS)

    def work(number: int) -> None:
        if number:
            _names(mount / f"d{number}", end)
            return
        longest, moves = 0.0, 0
        while time.monotonic() < end:
            began = time.monotonic()
            (mount / f"p{moves % 4}" / "moved").rename(mount / f"p{(moves + 1) % 4}" / "moved")
            longest = max(longest, time.monotonic() - began)
            moves += 1
        check(moves >= 10, f"only {moves} renames")
        check(longest < LONGEST, f"a rename took {longest:.1f} s")

    children(12, work)


@long_test
def many_processes_share_a_small_journal(place: Place) -> None:
    """64, with the smallest journal of a single domain: none waits for ever, and all is sound."""
    place.own_lanefs("the size of the journal is lanefs's")
    for mode in MODES:
        with loop_device(place, 200, domains=1, journal="4M") as (device, backing):
            with mounted(place, device, f"journal={mode}") as mount:
                longest = _work_of_many(mount, backing.parent)
            fsck(place, device)
        print(f"journal={mode}: the longest operation took {longest:.2f} s", flush=True)
        check(longest < LONGEST, f"journal={mode}: an operation took {longest:.1f} s")


@long_test
def each_mode_joins_and_commits_as_it_says(place: Place) -> None:
    """By slots with `concurrent` alone; with `serial` by nobody but the domain's thread."""
    place.own_lanefs("the modes are lanefs's")
    for mode in MODES:
        with (
            loop_device(place, 100, domains=1) as (device, _),
            mounted(place, device, f"journal={mode}") as mount,
        ):
            seen = traced(
                device, lambda mount=mount: children(4, lambda n: _synced(mount / f"d{n}"))
            )
        slots = any("lanefs_handle_start:" in line and " slot 1" in line for line in seen)
        commits = [line.strip() for line in seen if "lanefs_commit:" in line]
        check(len(commits) > 0, f"journal={mode}: no commit was seen")
        thread = all(line.startswith("lanefs-commit/") for line in commits)
        equal(slots, mode == "concurrent", f"journal={mode}: whether handles join by slots")
        equal(thread, mode == "serial", f"journal={mode}: whether the thread alone commits")


def _synced(directory: Path) -> None:
    directory.mkdir()
    for n in range(50):
        file = os.open(directory / f"f{n}", os.O_CREAT | os.O_WRONLY)
        os.fsync(file)
        os.close(file)


def _work_of_many(mount: Path, results: Path) -> float:
    """Seconds of the operation that took longest."""

    def work(number: int) -> None:
        directory = mount / f"d{number}"
        directory.mkdir()
        longest = 0.0
        for n in range(ROUNDS):
            name, renamed = directory / f"f{n}", directory / f"r{n}"
            for step in (name.touch, lambda: name.rename(renamed), os.sync, renamed.unlink):
                began = time.monotonic()
                step()
                longest = max(longest, time.monotonic() - began)
        (results / f"longest{number}").write_text(str(longest))

    children(MANY, work)
    return max(float((results / f"longest{number}").read_text()) for number in range(MANY))


@contextmanager
def _names_come_and_go(directories: Mapping[int, Path]) -> Iterator[None]:
    """A task on each of these CPUs creates and removes a name in its directory."""
    tasks = []
    for cpu, directory in directories.items():
        task = os.fork()
        if task == 0:
            os.sched_setaffinity(0, {cpu})
            while True:
                (directory / "f").touch()
                (directory / "f").unlink()
        tasks.append(task)
    try:
        yield
    finally:
        for task in tasks:
            os.kill(task, signal.SIGKILL)
            os.waitpid(task, 0)


def _syncs_beside(
    mount: Path, device: str, directories: Mapping[int, Path], count: int
) -> tuple[float, float, float]:
    """Commits per fsync on CPU 0, their median and p99 in ms, beside names that come and go."""
    took: list[float] = []

    def sync() -> None:
        os.sched_setaffinity(0, {0})
        fd = os.open(mount / "0" / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        for _ in range(count):
            os.write(fd, b"x" * 4096)
            began = time.monotonic()
            os.fsync(fd)
            took.append(1000 * (time.monotonic() - began))
        os.close(fd)

    with _names_come_and_go(directories):
        commits = len(traced(device, sync, "lanefs/lanefs_commit"))
    return commits / count, statistics.median(took), statistics.quantiles(took, n=100)[-1]


def _compared(
    place: Place, domains: int, cpus: Sequence[int], count: int
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """The same, beside a task on each of the CPUs in its own domain, and in the next domain."""
    place.own()
    if place.filesystem != "lanefs" or len(os.sched_getaffinity(0)) < domains:
        raise Skipped(f"{domains} domains need lanefs and {domains} CPUs")
    with slow_device(place, 256, 0.002, domains) as device, mounted(place, device) as mount:
        for cpu in range(domains):
            os.sched_setaffinity(0, {cpu})
            (mount / str(cpu)).mkdir()
        os.sync()
        own, tied = (
            _syncs_beside(
                mount, device, {cpu: mount / str((cpu + step) % domains) for cpu in cpus}, count
            )
            for step in (0, 1)
        )
    for what, (commits, median, p99) in (("own domains", own), ("the next", tied)):
        said = f"{what}: {commits:.2f} commits per fsync, {median:.1f} ms, p99 {p99:.1f} ms"
        print(said, flush=True)
    return own, tied


@long_test
def an_fsync_does_not_chase_operations_of_two_domains(place: Place) -> None:
    """It commits what it needs of both, and not what began meanwhile."""
    own, tied = _compared(place, 2, [0], SYNCS)
    check(tied[0] < 2.5 * own[0], f"{tied[0]:.2f} commits per fsync, {own[0]:.2f} without ties")


@long_test
def an_fsync_does_not_chase_operations_of_eight_domains(place: Place) -> None:
    """Each ties two of them, so that all are tied: it commits each once or twice."""
    own, tied = _compared(place, MANY_DOMAINS, range(MANY_DOMAINS), SYNCS // 4)
    check(
        tied[0] < 2 * MANY_DOMAINS * own[0],
        f"{tied[0]:.2f} commits per fsync of {MANY_DOMAINS} domains, {own[0]:.2f} without ties",
    )


@long_test
def a_throttled_group_does_not_hold_up_the_others(place: Place) -> None:
    """A cgroup that may write 8 KiB a second commits what others wait for, and as fast as they."""
    group = cgroups(place, "io", "memory") / "slow"
    with (
        loop_device(place, 100, domains=1) as (device, backing),
        mounted(place, device) as mount,
    ):
        group.mkdir()
        number = os.stat(device).st_rdev
        limit = f"{os.major(number)}:{os.minor(number)} wbps=8192"
        (group / "io.max").write_text(limit)
        end = time.monotonic() + SECONDS

        def work(task: int) -> None:
            if not task:
                (group / "cgroup.procs").write_text("0")
            longest, n = 0.0, 0
            while time.monotonic() < end:
                began = time.monotonic()
                file = os.open(mount / f"t{task}-{n}", os.O_CREAT | os.O_WRONLY)
                os.fsync(file)
                os.close(file)
                longest = max(longest, time.monotonic() - began)
                n += 1
            (backing.parent / f"longest{task}").write_text(str(longest))

        children(3, work)
        longest = max(float((backing.parent / f"longest{task}").read_text()) for task in range(3))
        group.rmdir()
    check(longest < SECONDS / 2, f"an fsync took {longest:.1f} s")


def _fsyncs(path: Path, cpu: int, end: float, work: float = 0) -> list[float]:
    """Milliseconds of each fsync of a growing file until then, on this CPU, which works between."""
    os.sched_setaffinity(0, {cpu})
    took = []
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    while time.monotonic() < end:
        busy = time.process_time() + work
        while time.process_time() < busy:
            pass
        os.write(fd, b"x" * 4096)
        began = time.monotonic()
        os.fsync(fd)
        took.append(1000 * (time.monotonic() - began))
    os.close(fd)
    return took


def _p99_beside(mount: Path, results: Path, group: Path, mode: str, quota: str) -> float:
    """The p99 in ms of a task's fsyncs, beside a task on another CPU that has this quota."""
    (group / "cpu.max").write_text(f"{quota} 100000")
    end = time.monotonic() + QUOTA_SECONDS

    def work(number: int) -> None:
        if number:
            (group / "cgroup.procs").write_text("0")
        took = _fsyncs(mount / f"f{number}", number, end, QUOTA_WORK if number else 0)
        if not number:
            found = statistics.quantiles(took, n=100)[-1]
            (results / "p99").write_text(str(found))
            said = f"{mode} {quota}: {len(took)} fsyncs, median {statistics.median(took):.1f} ms"
            print(f"{said}, p99 {found:.1f}, longest {max(took):.1f}", flush=True)

    children(2, work)
    return float((results / "p99").read_text())


@long_test
def a_group_without_cpu_time_does_not_hold_up_the_others(place: Place) -> None:
    """It may commit what others wait for, and run out of its quota in between."""
    place.own()
    if len(os.sched_getaffinity(0)) < 2:
        raise Skipped("one CPU")
    group = cgroups(place, "cpu") / "short"
    modes = ("concurrent", "serial") if place.filesystem == "lanefs" else ("",)
    with (
        tempfile.TemporaryDirectory(dir="/run") as results,
        slow_device(place, 256, 0.002, 2) as device,
    ):
        group.mkdir()
        found = {mode: _p99s_beside(place, device, Path(results), group, mode) for mode in modes}
        group.rmdir()
    for mode, (alone, beside) in found.items():
        check(beside < 3 * alone, f"{mode}: p99 {beside:.1f} ms, {alone:.1f} without a quota")


def _p99s_beside(
    place: Place, device: str, results: Path, group: Path, mode: str
) -> tuple[float, float]:
    """Medians of the p99 beside a task without a quota, and with one."""
    with mounted(place, device, *([f"journal={mode}"] if mode else [])) as mount:
        os.sched_setaffinity(0, {0})
        for number in range(2):
            (mount / f"f{number}").touch()
        os.sync()
        found = [
            [_p99_beside(mount, results, group, mode, quota) for quota in QUOTAS]
            for _ in range(QUOTA_ROUNDS)
        ]
    alone, *beside = zip(*found, strict=True)
    return statistics.median(alone), max(map(statistics.median, beside))


@long_test
def a_task_of_a_group_commits_until_it_lacks_cpu_time(place: Place) -> None:
    """Where the kernel stops tasks in a commit, the thread commits for a group that was stopped."""
    place.own_lanefs("another file system's thread commits always")
    if not Path("/proc/self/schedstat").exists():
        raise Skipped("a kernel without CONFIG_SCHED_INFO does not tell who lacked CPU time")
    group = cgroups(place, "cpu") / "stopped"
    with loop_device(place, 100, domains=1) as (device, _), mounted(place, device) as mount:
        group.mkdir()
        before = _threads_commits(device, mount / "before", group)
        (group / "cpu.max").write_text("1000 100000")
        _threads_commits(device, mount / "stopped", group)
        (group / "cpu.max").write_text("max 100000")
        after = _threads_commits(device, mount / "after", group)
        group.rmdir()
    check(not all(before), "the thread commits for a group without a limit")
    major, minor = (int(word) for word in os.uname().release.split(".")[:2])
    if (major, minor) < (6, 18):
        check(all(after), "a task of a group that lacked CPU time commits")


def _threads_commits(device: str, directory: Path, group: Path) -> list[bool]:
    """By commit, while a task of the group syncs: whether the domain's thread made it."""

    def work(_: int) -> None:
        (group / "cgroup.procs").write_text("0")
        _synced(directory)

    seen = traced(device, lambda: children(1, work), "lanefs/lanefs_commit")
    return [line.strip().startswith("lanefs-commit/") for line in seen]
