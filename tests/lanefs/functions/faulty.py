# SPDX-License-Identifier: GPL-2.0-only
"""Devices whose requests fail: all, those of some blocks, writes alone, or some at random."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fscale.vm.crashtest import map_device
from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.harness import Place, Skipped, check, run
from tests.lanefs.functions.loop import loop_device

NAME = "fscale-failing"
SECTORS = BLOCK // 512
DEBUG = Path("/sys/kernel/debug")
_INJECTION = DEBUG / "fail_make_request"
# More errors than any test injects: what is left of them tells how many there were.
_MOST_ERRORS = 1_000_000


@dataclass(frozen=True)
class Disk:
    """A device-mapper device, of which parts can fail."""

    path: str
    below: str
    sectors: int

    def fail(self, blocks: Sequence[int] | None = None) -> None:
        """Requests for these blocks fail from now on, or for any block."""
        if blocks is None:
            self._load(f"0 {self.sectors} error")
            return
        lines, at = [], 0
        for block in sorted(blocks):
            start = block * SECTORS
            if start > at:
                lines.append(f"{at} {start - at} linear {self.below} {at}")
            lines.append(f"{start} {SECTORS} error")
            at = start + SECTORS
        if self.sectors > at:
            lines.append(f"{at} {self.sectors - at} linear {self.below} {at}")
        self._load("\n".join(lines))

    def fail_writes(self) -> None:
        """Writes and flushes fail from now on; reads do not."""
        self._load_flakey("error_writes")

    def drop_writes(self) -> None:
        """Writes and flushes succeed from now on, and do nothing, as if the power was cut."""
        self._load_flakey("drop_writes")

    def mend(self) -> None:
        """No request fails any more."""
        self._load(f"0 {self.sectors} linear {self.below} 0")

    def _load_flakey(self, feature: str) -> None:
        subprocess.run(["modprobe", "dm-flakey"], capture_output=True, check=False)
        if "flakey" not in run("dmsetup", "targets"):
            raise Skipped("no dm-flakey in this kernel")
        # It is never up, and is down for an hour.
        self._load(f"0 {self.sectors} flakey {self.below} 0 0 3600 1 {feature}")

    def _load(self, table: str) -> None:
        # The file system is not to be frozen: it could not be, without its device.
        run("dmsetup", "suspend", "--nolockfs", "--noflush", NAME)
        done = subprocess.run(["dmsetup", "reload", NAME], input=table, text=True, check=False)
        check(done.returncode == 0, f"dmsetup does not take the table {table}")
        run("dmsetup", "resume", NAME)


@contextmanager
def failing(place: Place, mib: int, domains: int = 1, alloc: str = "") -> Iterator[Disk]:
    """A disk with a new file system, which does not fail yet."""
    with loop_device(place, mib, domains=domains, alloc=alloc) as (below, _):
        sectors = mib * 2048
        with map_device(NAME, f"0 {sectors} linear {below} 0") as path:
            yield Disk(path, below, sectors)


@dataclass(frozen=True)
class RandomErrors:
    """Errors of the kernel's fault injection (CONFIG_FAIL_MAKE_REQUEST) for one device."""

    switch: Path

    def begin(self, one_in: int) -> None:
        """One request in so many fails from now on, at random."""
        # The probability is in percent, and tried at each interval-th request only.
        percent, interval = (100 // one_in, 1) if one_in <= 100 else (50, one_in // 2)
        self._set("probability", percent)
        self._set("interval", interval)
        self._set("times", _MOST_ERRORS)
        self.switch.write_text("1")

    def end(self) -> int:
        """No request fails any more; how many have failed."""
        self.switch.write_text("0")
        self._set("probability", 0)
        return _MOST_ERRORS - int((_INJECTION / "times").read_text())

    @staticmethod
    def _set(name: str, value: int) -> None:
        (_INJECTION / name).write_text(str(value))


@contextmanager
def random_errors(device: str) -> Iterator[RandomErrors]:
    """The kernel's fault injection for a device; it injects nothing yet. Skipped without it."""
    number = Path(device).stat().st_rdev
    switch = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/make-it-fail")
    if not switch.exists():
        raise Skipped("no CONFIG_FAIL_MAKE_REQUEST in this kernel")
    if not _INJECTION.exists():
        run("mount", "-t", "debugfs", "none", str(DEBUG))
    (_INJECTION / "verbose").write_text("0")
    errors = RandomErrors(switch)
    try:
        yield errors
    finally:
        errors.end()
