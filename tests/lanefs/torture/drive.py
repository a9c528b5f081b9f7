# SPDX-License-Identifier: GPL-2.0-only
"""Runs one slice in a process of its own and judges it."""

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fscale.model.paths import ROOT
from fscale.model.store import Store
from fscale.vm.qemu import protected
from tests.lanefs.torture.plan import Slice

# Beside the guest's own limit: for building the module and the images that it boots from.
SETUP = 1800.0
KERNEL_REPORT = "report of the guest's kernel"
SHOWN = 6


@dataclass(frozen=True)
class Verdict:
    """How a slice ended."""

    ok: bool
    seconds: float
    text: str


def run(piece: Slice, directory: Path) -> Verdict:
    """Run a slice; its output goes to `directory`/ID.log. Nothing of it outlives the call."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{piece.id}.log"
    results = directory / piece.id
    shutil.rmtree(results, ignore_errors=True)
    argv = [sys.executable, "-m", piece.module, *piece.argv]
    if piece.results:
        argv += ["--output", str(results)]
    started = time.monotonic()
    with log.open("wb") as said:
        # A process group of its own: one Ctrl-C shall interrupt it once, by us.
        child = subprocess.Popen(
            protected(argv),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = child.wait(piece.boot.limit + SETUP)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(child)
    text = log.read_text(errors="replace")
    verdict = judge(piece, status, text, Store(results) if piece.results else None)
    return Verdict(not verdict, round(time.monotonic() - started, 1), verdict or _tail(text, 1))


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a slice that still runs: it ends its guest, and the kernel does when it is killed."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(30)
    if child.poll() is None:
        child.kill()
        child.wait()


def judge(piece: Slice, status: int | None, text: str, results: Store | None) -> str:
    """What is wrong with a slice that ended with `status` (None: not at all); "" if nothing."""
    if status is None:
        return "it did not end"
    if status != 0:
        return f"exit code {status}: {_tail(text, SHOWN)}"
    if KERNEL_REPORT in text:
        return text[text.index(KERNEL_REPORT) :][:2000]
    if results is None:
        return ""
    cells = results.cells()
    bad = [f"{cell.id} is {cell.status}: {cell.reason}" for cell in cells if cell.status != "ok"]
    if len(cells) < piece.amount:
        bad.append(f"{len(cells)} of {piece.amount} cells were measured")
    return "\n".join(bad)


def _tail(text: str, lines: int) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
