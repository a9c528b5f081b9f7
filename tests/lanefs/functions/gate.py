# SPDX-License-Identifier: GPL-2.0-only
"""A device with a gate: requests for some of its blocks wait as long as it is closed."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fscale.vm.crashtest import map_device
from tests.lanefs.blocks import BLOCK
from tests.lanefs.functions.harness import Failed, run

_SECTORS = BLOCK // 512
_GATE = "lanefs-gate"
_LONG = 3_600_000
"""milliseconds"""


@dataclass(frozen=True)
class Gate:
    """Blocks of a device, as a device-mapper device of their own."""

    device: str
    start: int
    sectors: int

    def close(self) -> None:
        """Let reads wait; writes and flushes pass."""
        self._becomes(f"delay {self.device} {self.start} {_LONG} {self.device} {self.start} 0")

    def open(self) -> None:
        """Let all pass, also reads that wait: a table that is replaced ends their delay."""
        self._becomes(f"linear {self.device} {self.start}")

    def breaks(self) -> None:
        """Let all fail."""
        self._becomes("error")

    def _becomes(self, target: str) -> None:
        run("dmsetup", "reload", _GATE, "--table", f"0 {self.sectors} {target}")
        run("dmsetup", "resume", _GATE)


@contextmanager
def gated(device: str, first: int, end: int) -> Iterator[tuple[str, Gate]]:
    """The same device, with an open gate in front of the blocks from `first` to before `end`."""
    size = int(run("blockdev", "--getsz", device))
    start, stop = first * _SECTORS, end * _SECTORS
    gate = Gate(device, start, stop - start)
    with map_device(_GATE, f"0 {gate.sectors} linear {device} {start}") as behind:
        table = (
            f"0 {start} linear {device} 0\n"
            f"{start} {stop - start} linear {behind} 0\n"
            f"{stop} {size - stop} linear {device} {stop}"
        )
        with map_device("lanefs-gated", table) as through:
            yield through, gate


def wait_until_in(process: subprocess.Popen[str], function: str, seconds: float = 60) -> None:
    """Wait until a process is in a function of the kernel, or one that begins like this."""
    ends = time.monotonic() + seconds
    while function not in (stack := Path(f"/proc/{process.pid}/stack").read_text()):
        if process.poll() is not None:
            raise Failed(f"{process.args} has ended, with {process.returncode}")
        if time.monotonic() > ends:
            raise Failed(f"{process.args} is not in {function}, but in\n{stack}")
        time.sleep(0.02)


def stacks(module: str = "lanefs") -> str:
    """What processes do that are in functions of a module: their names and stacks."""
    found = []
    for stack in Path("/proc").glob("[0-9]*/stack"):
        try:
            text, name = stack.read_text(), (stack.parent / "comm").read_text()
        except OSError:
            continue
        if f"[{module}]" in text:
            found.append(name + text)
    return "\n".join(found)
