# SPDX-License-Identifier: GPL-2.0-only
"""What an fsync waits, and how many handles share a commit, in a guest, against cores.

    bin/fscale vm exec --kernel 6.12 --smp 8 --fs lanefs_one -- \
        python3 -m tests.lanefs.commit_time --delay 2 --fs lanefs_one:journal=serial \
        --fs lanefs_one:journal=parallel --fs lanefs_one:journal=concurrent --fs ext4 --fs xfs

A task a core appends 4 KiB to a file of its own and syncs it, so that each fsync needs a commit of
a journal that all share. The device has latency, so that what is measured is waiting and not the
guest's CPUs (`device.slow_disk()`).
"""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from fscale.model import catalogue
from tests.lanefs.device import MOUNT, Fault, Volume, command, slow_disk

MIB = 512
FILE_MIB = 32
# Tracepoints: of a handle, and of a commit.
EVENTS = {
    "lanefs": ("lanefs:lanefs_handle_start", "lanefs:lanefs_commit"),
    "ext4": ("jbd2:jbd2_handle_start", "jbd2:jbd2_commit_locking"),
}
app = typer.Typer(add_completion=False)


@app.command()
def measure(
    fs: Annotated[list[str], typer.Option(help="NAME or NAME:MOUNT-OPTIONS; repeatable.")],
    cores: Annotated[str, typer.Option(help="Numbers of tasks, one per CPU.")] = "1,2,4,8",
    delay: Annotated[int, typer.Option(help="Delay of each read, write and flush in ms.")] = 2,
    seconds: Annotated[int, typer.Option(min=1, help="Seconds per row.")] = 5,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds over all file systems.")] = 1,
) -> None:
    """Print a row for each file system and core count: fsyncs per second, their p50 and p99 in ms,
    commits per second, handles per commit."""
    print("fs cores fsyncs/s p50_ms p99_ms commits/s handles/commit")
    for count in (int(word) for word in cores.split(",")):
        for _ in range(rounds):
            for name in fs:
                _row(name, count, delay, seconds)


def _row(name: str, cores: int, delay: int, seconds: int) -> None:
    known, _, options = name.partition(":")
    filesystem = catalogue.load_filesystem(known)
    with slow_disk(MIB, delay) as device:
        volume = Volume(filesystem, device, options.split(",") if options else [])
        volume.make()
        with volume.mounted():
            events = EVENTS.get(filesystem.kernel, ())
            syncs, counted = _load(cores, seconds, events)
    total = syncs["total_ios"] / seconds
    percentiles = syncs["lat_ns"]["percentile"]
    p50, p99 = (percentiles[key] / 1e6 for key in ("50.000000", "99.000000"))
    coalesced = "- -"
    if counted:
        handles, commits = counted
        coalesced = f"{commits / seconds:.0f} {handles / commits:.1f}"
    print(f"{name} {cores} {total:.0f} {p50:.1f} {p99:.1f} {coalesced}", flush=True)


def _load(cores: int, seconds: int, events: tuple[str, ...]) -> tuple[dict, list[int]]:
    """fio's account of its fsyncs, and how often each event was seen."""
    fio = ["fio", "--name=log", f"--directory={MOUNT}", "--ioengine=psync", "--rw=write"]
    fio += ["--bs=4k", "--fsync=1", "--fallocate=none", f"--size={FILE_MIB}m", "--group_reporting"]
    fio += [f"--numjobs={cores}", "--cpus_allowed_policy=split", f"--cpus_allowed=0-{cores - 1}"]
    fio += [f"--runtime={seconds}", "--time_based", "--output-format=json", "--eta=never"]
    with tempfile.TemporaryDirectory() as scratch:
        said, counts = Path(scratch) / "fio.json", Path(scratch) / "counts"
        perf = ["perf", "stat", "-a", "-x", ";", "-o", str(counts)]
        perf += [word for event in events for word in ("-e", event)]
        command([*(perf if events else []), *fio, f"--output={said}"])
        (job,) = json.loads(said.read_text())["jobs"]
        if job["error"]:
            raise Fault(f"fio failed with errno {job['error']}")
        lines = counts.read_text().splitlines() if events else []
    return job["sync"], [
        int(line.split(";")[0]) for line in lines if line.partition(";")[0].isdigit()
    ]


if __name__ == "__main__":
    try:
        app()
    except Fault as fault:
        raise SystemExit(str(fault)) from None
