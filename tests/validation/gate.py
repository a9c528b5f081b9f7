# SPDX-License-Identifier: GPL-2.0-only
"""Sharing planted in lanefs: does the gate find it each time, and name it? Exits 1 where not.

.venv/bin/python -m tests.validation.gate --plant atomic --tries 5 --output results/validation/gate
"""

import argparse
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fscale.model.paths import ROOT

PATCHES = Path(__file__).parent / "plants"
SEEDS = 3


@dataclass(frozen=True)
class Plant:
    """A patch of the sources: the static object that it shares, and functions that take it."""

    object: str
    functions: tuple[str, ...]


PLANTS = {
    # One atomic counter in the path of every change.
    "atomic": Plant("lanefs_planted", ("lanefs_begin",)),
    # What each domain has of its own, side by side in one line.
    "sharing": Plant(
        "lanefs_inodes_free", ("lanefs_inode_alloc", "lanefs_inode_free", "lanefs_place")
    ),
}


def fscale(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The product's own command."""
    argv = [str(ROOT / "bin" / "fscale"), *map(str, arguments)]
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)


def sources(tree: Path) -> None:
    """Put lanefs/ as it was committed into a directory."""
    archive = ["git", "-C", ROOT, "archive", "HEAD", "lanefs"]
    tar = subprocess.run(archive, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", tree], input=tar, check=True)


def module(plant: str | None, kernel: str) -> str:
    """Build lanefs for a kernel, with a plant or as it is; the path of the module."""
    with TemporaryDirectory() as directory:
        tree = Path(directory)
        sources(tree)
        if plant:
            subprocess.run(["git", "apply", PATCHES / f"{plant}.patch"], cwd=tree, check=True)
        done = fscale("vm", "module", "build", tree / "lanefs", "--kernel", kernel)
    if done.returncode:
        raise SystemExit(f"lanefs ({plant or 'as it is'}) does not build")
    return done.stdout.strip()


def found(plant: Plant, report: Path, workload: str) -> bool:
    """Whether a workload's shared lines fail, with the plant's line and a function of it named."""
    for case in ET.parse(report).getroot().iter("testcase"):
        point = case.get("classname") or ""
        failures = [failure.get("message") or "" for failure in case.findall("failure")]
        if case.get("name") == "shared lines" and point.startswith(f"{workload} "):
            print(*failures or [f"{point}: no finding"], sep="\n", flush=True)
            return any(
                plant.object in text and any(name in text for name in plant.functions)
                for text in failures
            )
    return False


def main() -> int:
    """Build both modules, compare them so many times, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plant", choices=PLANTS, required=True)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--workloads", default="MWCL,MWUL")
    parser.add_argument("--cores", default="4")
    parser.add_argument("--kernel", default="bookworm")
    parser.add_argument("--jobs", default="1")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    old, new = (module(name, given.kernel) for name in (None, given.plant))
    times = 0
    for number in range(given.tries):
        output = given.output / given.plant / f"{number + 1}"
        report = output.with_suffix(".xml")
        done = fscale(
            "gate",
            *("--base", f"lanefs:kernel={given.kernel}:module={old}"),
            *("--new", f"lanefs:kernel={given.kernel}:module={new}"),
            *("--workload", given.workloads, "--cores", given.cores, "--jobs", given.jobs),
            *("--seed", str(1 + SEEDS * number), "--seeds", str(SEEDS)),
            *("--output", output, "--junit", report),
        )
        named = (
            [found(PLANTS[given.plant], report, name) for name in given.workloads.split(",")]
            if report.exists()
            else []
        )
        good = done.returncode == 1 and bool(named) and all(named)
        print(f"try {number + 1}: {'found' if good else 'not found'}", flush=True)
        times += good
    print(f"{given.plant}: found and named in {times} of {given.tries}")
    return int(times < given.tries)


if __name__ == "__main__":
    sys.exit(main())
