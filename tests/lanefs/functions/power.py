# SPDX-License-Identifier: GPL-2.0-only
"""Suspend and hibernation: what a file system does when all tasks are frozen."""

import os
import time
from pathlib import Path

from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    children,
    equal,
    long_test,
    run,
    test,
)

_NOFREEZE = 0x8000
_THREADS = {
    "lanefs": ("lanefs-commit", "lanefs-ckpt"),
    "ext4": ("jbd2",),
    "xfs": ("xfsaild",),
}
_POWER = Path("/sys/power")
_DELAY = Path("/sys/module/suspend/parameters/pm_test_delay")


@test
def the_journals_threads_can_be_frozen(place: Place) -> None:
    """What a thread writes after a hibernation's image was made is newer than that image."""
    place.own()
    names = _THREADS.get(place.filesystem)
    if names is None:
        raise Skipped("its threads are not known")
    if not Path("/sys/power/state").exists():
        raise Skipped("this kernel does not freeze tasks")
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text().partition("(")[2].rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if name.startswith(names):
            found.append(name)
            check(not int(fields.split()[6]) & _NOFREEZE, f"{name} cannot be frozen")
    missing = [name for name in names if not any(n.startswith(name) for n in found)]
    equal(missing, [], "threads that are not there")


@long_test
def the_system_freezes_and_thaws_among_writers(place: Place) -> None:
    """The kernel's test of suspend stops after all tasks are frozen; all writers go on then."""
    place.own()
    if not (_POWER / "pm_test").exists():
        raise Skipped("no pm_test in this kernel")
    rounds, done = 4, place.directory / "done"

    def work(number: int) -> None:
        if number == 0:
            for _ in range(rounds):
                time.sleep(0.5)
                (_POWER / "state").write_text("freeze")
            done.touch()
            return
        own = place.directory / f"d{number}"
        own.mkdir()
        count = 0
        while not done.exists() or count < 10:
            for n in range(20):
                (own / f"{count}-{n}").write_bytes(b"x" * 5000)
            fd = os.open(own / f"{count}-0", os.O_RDWR)
            os.fsync(fd)
            os.close(fd)
            for n in range(1, 20):
                (own / f"{count}-{n}").rename(place.directory / f"{number}-{n}")
            count += 1

    if _DELAY.exists():
        _DELAY.write_text("1")
    (_POWER / "pm_test").write_text("freezer")
    try:
        children(5, work)
    finally:
        (_POWER / "pm_test").write_text("none")
    place.cycle()
    for number in range(1, 5):
        for path in (place.directory / f"d{number}").iterdir():
            equal(path.stat().st_size, 5000, f"bytes of {path}")
    check("refusing to freeze" not in run("dmesg"), "tasks refuse to freeze")
