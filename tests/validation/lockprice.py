# SPDX-License-Identifier: GPL-2.0-only
"""What the lock profile costs on many cores, simulated: throughput with it and without.

    .venv/bin/python -m tests.validation.lockprice --output results/lockprice

A boot of the simulator (docs/design/simulator.md) takes all points in turn, so that they differ in
what is attached alone. The load of this machine does not touch the figures. The windows are too
short for the profile to come to few waits by itself: `first` is the profile as it begins, which
takes every wait, `later` one that takes them half as often after every four waits, and not every
1,024.
Both look all the time; `turns` is as `later`, in turns of --turn-ms where CPUs spin all the time.
Its windows have to be longer than a turn and a pause: see --window-ops.
"""

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from fscale.analysis.diagnosis import lockprofile
from fscale.model import paths
from fscale.model.results import CellKey
from fscale.runner.profilers import btf, lockmaps, locks
from fscale.runner.profilers.kallsyms import Kallsyms
from fscale.runner.profilers.locks import CACHES, STRUCTS
from fscale.runner.profilers.memory import KernelMemory
from fscale.sim import campaign, image, sweep
from fscale.sim.boot import Boot, PointResult
from fscale.sim.kerneltypes import btf_of, memory_of
from fscale.sim.plan import GuestPoint, fixed, order, script
from fscale.vm.module_build import Parts
from fscale.vm.steps import Steps, need

NONE = "nothing"
EMPTY = "bpftrace, empty"
# The microbenchmark of the guest: it finds the number of its point among its arguments, and whether
# something is to be attached around it.
AROUND = """#!/bin/sh
before=
for word; do
	[ "$before" != --roi ] || number=${word%%,*}
	before=$word
done
place=/host/attached/$number
[ -d "$place" ] || exec fscale-bench.plain "$@"
[ -d /sys/kernel/debug/tracing ] || mount -t debugfs debugfs /sys/kernel/debug
printf '#!/bin/sh\\nexec fscale-bench.plain %s\\n' "$*" >/tmp/bench
chmod +x /tmp/bench
if [ -f "$place/program.bt" ]; then
	bpftrace -o "$place/seen" -c "/bin/fscale-bench.plain $*" "$place/program.bt" 2>"$place/said"
else
	# shellcheck disable=SC2046
	fscale-locks "$place/seen" $(cat "$place/settings") /tmp/bench 2>"$place/said"
fi
"""


@dataclass(frozen=True)
class Attached:
    """What is attached in a point: settings of fscale-locks, or a bpftrace program, or nothing."""

    name: str
    settings: Mapping[str, int] | None = None
    program: str | None = None

    def put(self, place: Path) -> None:
        """Into the directory that the guest looks into."""
        if self.settings is None and self.program is None:
            return
        place.mkdir(parents=True)
        if self.program is not None:
            (place / "program.bt").write_text(self.program)
        else:
            words = [f"{name}={value}" for name, value in (self.settings or {}).items()]
            (place / "settings").write_text(" ".join(words))


def all_attached(shape: KernelMemory, programs: list[Path], turn_ms: int) -> list[Attached]:
    """Each thing whose price is asked, nothing first."""
    share = {
        "most_spun": locks.MAX_SPUN,
        "turn_ms": turn_ms,
        "pause_ms": turn_ms * locks.PAUSE_MS // locks.TURN_MS,
    }
    told = {"pid": 0, "sleep_bits": locks.SLEEP_BITS, **shape.as_json()}
    return [
        Attached(NONE),
        Attached("later", {**told, "spin_bits": 2}),
        Attached("first", {**told, "spin_bits": 63}),
        Attached("turns", {**told, "spin_bits": 2, **share}),
        Attached(
            EMPTY, program="tracepoint:lock:contention_begin { } tracepoint:lock:contention_end { }"
        ),
        *(Attached(path.stem, program=path.read_text()) for path in programs),
    ]


def names(seen: Path, shape: KernelMemory, types: btf.Btf, kallsyms: Path) -> list[str]:
    """Of the contended locks, the most waited for first, each with its share of all waiting."""
    content = json.loads(seen.read_text())
    profile: dict[str, Any] = {
        "memory": shape.as_json(),
        "samples": {},
        "layouts": locks.layouts({*STRUCTS, *CACHES.values(), "shmem_inode_info"}, types),
        "cache_structs": {**CACHES, "shmem_inode_cache": "shmem_inode_info"},
        "output": lockmaps.maps(content, Kallsyms(kallsyms)),
    }
    found = lockprofile.read(profile).locks
    whole = sum(lock.wait_ns for lock in found) or 1
    return [
        f"{lock.name.object} {lock.wait_ns / whole:.0%} (one in {lock.one_in})"
        for lock in found[:3]
    ]


def row(measured: PointResult, name: str, base: float | None) -> tuple[str, float]:
    """A line of the table, and the median window's rate in million operations a second."""
    windows = measured.windows
    rates = [1e3 * w.ops / w.ns for w in windows]
    rate, ops = statistics.median(rates), sum(w.ops for w in windows)
    cells = [
        measured.point.key.workload,
        str(measured.point.key.cores),
        name,
        f"{rate:.3f}",
        f"{rate / (base or rate):.2f}",
        f"{(max(rates) - min(rates)) / rate:.0%}",
        f"{sum(w.instructions for w in windows) / ops:.0f}",
        f"{sum(w.spin for w in windows) / sum(w.cycles for w in windows):.0%}",
    ]
    return f"| {' | '.join(cells)} |", rate


def main() -> None:
    """Boot, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--fs", default="tmpfs")
    parser.add_argument("--workload", default="MWCL")
    parser.add_argument("--cores", default="16")
    parser.add_argument("--machine", default="paper")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--window-ops", type=int, default=1024)
    parser.add_argument("--turn-ms", type=int, default=locks.TURN_MS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", type=int, default=0, help="of this machine, for the guest")
    parser.add_argument("--program", type=Path, action="append", default=[], help="of bpftrace")
    parser.add_argument(
        "--only", action="append", help="a name from the table; nothing is always there"
    )
    asked = parser.parse_args()
    loads, cores = asked.workload.split(","), [int(n) for n in asked.cores.split(",")]
    steps = Steps(Console(stderr=True))
    windows = fixed(asked.windows, asked.window_ops)
    prepared = sweep.prepare(
        sweep.Sweep(
            [asked.fs], loads, cores, asked.output, machine=asked.machine, windows=windows,
            seed=asked.seed,
        ),
        steps,
    )  # fmt: skip
    asked.output.mkdir(parents=True, exist_ok=True)
    around = asked.output / "around"
    around.write_text(AROUND)
    around.chmod(0o755)
    parts = Parts(
        files={
            "bin/fscale-bench": around,
            "bin/fscale-bench.plain": paths.BENCH,
            "bin/fscale-locks": paths.LOCKS,
            "bin/bpftrace": Path(need("bpftrace", "bpftrace")),
        }
    )
    prepared.initramfs = image.build(
        prepared.kernel, prepared.filesystems, prepared.media.values(), (), parts, steps
    )
    types = btf_of(prepared.kernel.image.read_bytes())
    assert types is not None
    shape = memory_of(types)
    assert shape is not None
    wanted = all_attached(shape, asked.program, asked.turn_ms)
    if asked.only:
        wanted = [one for one in wanted if one.name in (NONE, *asked.only)]
    attached: dict[int, Attached] = {}
    points = []
    for load in loads:
        for count in cores:
            for number, one in enumerate(wanted, len(points)):
                key = CellKey(
                    workload=load, filesystem=asked.fs, medium=prepared.cells[0].medium,
                    mode="buffered", cores=count, repetition=number + 1, duration=1,
                )  # fmt: skip
                points.append(GuestPoint(number, key, asked.seed))
                attached[number] = one
    points = order(points)
    text = script(points, prepared.filesystems, prepared.media, windows, 4 << 30)
    print("| workload | cores | attached | Mops/s | of nothing | spread | instructions | spin |")
    print("|---|--:|---|--:|--:|--:|--:|--:|", flush=True)
    with Boot(points, text, ()) as boot:
        place = boot.place.shared / "attached"
        for number, one in attached.items():
            one.put(place / str(number))
        campaign.start(prepared, boot, points, asked.cpu)
        base: dict[tuple[str, int], float] = {}
        while not boot.ended:
            time.sleep(0.5)
            for measured in boot.poll():
                key, one = measured.point.key, attached[measured.point.number]
                if not measured.windows:
                    print(f"{one.name}: no windows: {measured.failed or measured.said}")
                    continue
                line, rate = row(measured, one.name, base.get((key.workload, key.cores)))
                base.setdefault((key.workload, key.cores), rate)
                print(line, flush=True)
        kallsyms = asked.output / "kallsyms"
        kallsyms.write_text(boot.kallsyms())
        print()
        for number, one in attached.items():
            seen = place / str(number) / "seen"
            if one.settings is not None and seen.exists():
                key = next(point.key for point in points if point.number == number)
                told = "; ".join(names(seen, shape, types, kallsyms))
                print(f"{key.workload} on {key.cores}, {one.name}: {told}")
        if place.exists():
            shutil.copytree(place, asked.output / "attached", dirs_exist_ok=True)


if __name__ == "__main__":
    main()
