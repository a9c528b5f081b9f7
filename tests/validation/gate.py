# SPDX-License-Identifier: GPL-2.0-only
"""Sharing planted in lanefs or ext4: does the gate find it each time, and name it? 1 where not.

The plant `cold` shares nothing: it only reads lines that nobody writes, and must not be found.

.venv/bin/python -m tests.validation.gate --plant atomic --tries 5 --output results/validation/gate
"""

import argparse
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from fscale.analysis.compare.counted import SHARED_LINES
from fscale.analysis.compare.model import Sharing
from fscale.model.paths import ROOT
from fscale.vm.kbuild import debian_source
from fscale.vm.steps import Steps

PATCHES = Path(__file__).parent / "plants"
SEEDS = 3
LANEFS = "lanefs"


@dataclass(frozen=True)
class Plant:
    """A patch of the sources: the objects that it shares, and functions that take them."""

    objects: tuple[str, ...]
    functions: tuple[str, ...]
    filesystem: str = LANEFS
    workloads: str = "MWCL,MWUL"
    sharing: Sharing = "same word"
    seeds: int = SEEDS

    @property
    def shares(self) -> bool:
        """Whether the gate must find it; else it must not."""
        return bool(self.objects)


PLANTS = {
    # One atomic counter in the path of every change.
    "atomic": Plant(("lanefs_planted",), ("lanefs_handle_start",)),
    # What each domain has of its own, side by side in one line.
    "sharing": Plant(
        ("lanefs_inodes_free",),
        ("lanefs_inode_alloc", "lanefs_inode_free", "lanefs_choose_domain"),
        sharing="only this layout",
    ),
    # One in Debian's ext4 for reads, which share nothing, and one for handles, which share a lot.
    "ext4": Plant(
        ("ext4_reads_planted", "ext4_handles_planted"),
        ("ext4_file_read_iter", "__ext4_journal_start_sb"),
        "ext4",
        "DRBL,MWCL",
    ),
    # A counter for each CPU, all in one line of the heap: five boots must have that layout.
    "members": Plant(
        ("memory at",), ("ext4_file_read_iter",), "ext4", "DRBL", "only this layout", seeds=5
    ),
    # Each read of ext4 reads a line that is cold to its CPU and that nobody ever writes.
    "cold": Plant((), (), "ext4", "DRBL"),
}


def fscale(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The product's own command."""
    argv = [str(ROOT / "bin" / "fscale"), *map(str, arguments)]
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)


def boots(
    fs: str, workloads: str | None, seeds: int, jobs: str, output: Path, *more: str | Path
) -> bool:
    """Simulate a side's boots as the gate does (None: all workloads); whether all are good."""
    done = fscale(
        *("simulate", "--fs", fs, "--seeds", str(seeds), "--jobs", jobs, "--output", output),
        *("--windows", "5", "--append", "", "--memory", "2048", *more),
        *(("--workload", workloads) if workloads else ()),
    )
    return done.returncode == 0


def sources(tree: Path, commit: str = "HEAD", place: str = LANEFS) -> None:
    """Put a directory of this repository, as it was committed, into another."""
    archive = ["git", "-C", str(ROOT), "archive", commit, place]
    tar = subprocess.run(archive, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", tree], input=tar, check=True)


def kernel_sources(tree: Path, directory: str, kernel: str) -> None:
    """Put a directory of a Debian suite's kernel into another, at the place that it has there."""
    source = debian_source(kernel, Steps(Console(stderr=True)))
    shutil.copytree(source / directory, tree / directory)


def module(
    plant: str | None, kernel: str, filesystem: str = LANEFS, leave_out: str | None = None
) -> Path:
    """Build a file system for a Debian suite's kernel, with a plant or as it is.

    Of the plant the lines with the text `leave_out` are left out.
    """
    with TemporaryDirectory() as directory:
        tree = Path(directory)
        if filesystem == LANEFS:
            place = tree / LANEFS
            sources(tree)
        else:
            place = tree / "fs" / filesystem
            kernel_sources(tree, f"fs/{filesystem}", kernel)
        if plant:
            subprocess.run(["git", "apply", PATCHES / f"{plant}.patch"], cwd=tree, check=True)
        if leave_out:
            for path in place.rglob("*.c"):
                lines = path.read_text().splitlines(keepends=True)
                path.write_text("".join(line for line in lines if leave_out not in line))
        return build(place, kernel, f"{filesystem} ({plant or 'as it is'})")


def build(place: Path, kernel: str, name: str) -> Path:
    """Build a module's sources for a Debian suite's kernel."""
    done = fscale("vm", "module", "build", place, "--kernel", kernel)
    if done.returncode:
        raise SystemExit(f"{name} does not build")
    return Path(done.stdout.strip())


def found(plant: Plant, report: Path, workload: str) -> bool:
    """Whether a workload's shared lines fail, with the plant's line, function and sharing named."""
    for case in ET.parse(report).getroot().iter("testcase"):
        point = case.get("classname") or ""
        failures = [failure.get("message") or "" for failure in case.findall("failure")]
        if case.get("name") == SHARED_LINES and point.startswith(f"{workload} "):
            print(*failures or [f"{point}: no finding"], sep="\n", flush=True)
            return any(
                any(name in text for name in plant.objects)
                and any(name in text for name in plant.functions)
                and f"; {plant.sharing}:" in text
                for text in failures
            )
    return False


def main() -> int:
    """Build both modules, compare them so many times, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plant", choices=PLANTS, required=True)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--workloads", help="by default those that the plant is made for")
    parser.add_argument("--cores", default="4")
    parser.add_argument("--kernel", default="bookworm")
    parser.add_argument("--jobs", default="1")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    plant = PLANTS[given.plant]
    workloads = given.workloads or plant.workloads
    fs = plant.filesystem
    old, new = (module(name, given.kernel, fs) for name in (None, given.plant))
    seeds, times = plant.seeds, 0
    for number in range(given.tries):
        output = given.output / given.plant / f"{number + 1}"
        report = output.with_suffix(".xml")
        report.parent.mkdir(parents=True, exist_ok=True)
        done = fscale(
            "gate",
            *("--base", f"{fs}:kernel={given.kernel}:module={old}"),
            *("--new", f"{fs}:kernel={given.kernel}:module={new}"),
            *("--workload", workloads, "--cores", given.cores, "--jobs", given.jobs),
            *("--seed", str(1 + seeds * number), "--seeds", str(seeds)),
            *("--output", output, "--junit", report),
        )
        named = (
            [found(plant, report, name) for name in workloads.split(",")] if report.exists() else []
        )
        right = all(named) if plant.shares else not any(named)
        good = done.returncode == int(plant.shares) and bool(named) and right
        print(f"try {number + 1}: {'right' if good else 'wrong'}", flush=True)
        times += good
    must = "found and named" if plant.shares else "not found"
    print(f"{given.plant}: {must}, as it must be, in {times} of {given.tries}")
    return int(times < given.tries)


if __name__ == "__main__":
    sys.exit(main())
