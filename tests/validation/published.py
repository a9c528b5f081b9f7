# SPDX-License-Identifier: GPL-2.0-only
"""Kernel changes with a published gain on many cores, simulated as parent and child.

.venv/bin/python -m tests.validation.published --source linux-7.2 --build kernels --output results/c

`--source` is the unpacked source of Linux 7.2 (Debian's package `linux-source-7.2`), which has all
changes of reverts/changes.toml. A patch undoes one of them, so that parent and child differ in
nothing else. Finished kernels and cells are kept. `docs/scripts/pack_published.py` packs the
results.
"""

import argparse
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.validation.gate import fscale

REVERTS = Path(__file__).parent / "reverts"
CHANGES = REVERTS / "changes.toml"
IMAGE = Path("arch/x86/boot/bzImage")
MACHINE = "server"
CHILD = "child"


@dataclass(frozen=True)
class Change:
    """A change, and how it is simulated."""

    name: str
    patch: str
    workload: str
    cores: tuple[int, ...]
    filesystem: str = "tmpfs"
    options: tuple[str, ...] = ()


def changes() -> list[Change]:
    """Those of changes.toml with a patch; one and two cores, too, for Amdahl's law."""
    return [
        _change(name, one)
        for name, one in tomllib.loads(CHANGES.read_text(encoding="utf-8")).items()
        if "not_simulated" not in one
    ]


def _change(name: str, one: dict[str, Any]) -> Change:
    return Change(
        name,
        one.get("patch", name),
        one["workload"],
        (1, 2, *(cores for cores, _, _ in one["published"])),
        one.get("filesystem", "tmpfs"),
        tuple(one.get("options", ())),
    )


@contextmanager
def patched(source: Path, patch: Path) -> Iterator[None]:
    """A source tree with a patch, and afterwards without it, as old as before."""
    counts = ["git", "apply", "--numstat", patch]
    lines = subprocess.run(counts, cwd=source, stdout=subprocess.PIPE, text=True, check=True).stdout
    paths = [source / line.split("\t")[2] for line in lines.splitlines()]
    times = {path: path.stat().st_mtime_ns for path in paths}
    subprocess.run(["git", "apply", patch], cwd=source, check=True)
    try:
        yield
    finally:
        subprocess.run(["git", "apply", "--reverse", patch], cwd=source, check=True)
        for path, when in times.items():
            os.utime(path, ns=(when, when))


def refuse_changed(source: Path) -> None:
    """Exit if a patch does not apply, as where a build was killed before it was taken back."""
    for patch in sorted(REVERTS.glob("*.patch")):
        check = ["git", "apply", "--check", patch]
        if subprocess.run(check, cwd=source, capture_output=True, check=False).returncode:
            raise SystemExit(f"{source} is not as it was published ({patch.name}): unpack it anew")


def build(source: Path, tree: Path, jobs: str) -> None:
    """Build a kernel and its modules in `tree`."""
    make = ["make", "-s", "-C", source.resolve(), f"O={tree.resolve()}"]
    if not (tree / ".config").exists():
        tree.mkdir(parents=True)
        config = REVERTS / "kernel.config"
        subprocess.run([*make, f"KCONFIG_ALLCONFIG={config}", "allnoconfig"], check=True)
    subprocess.run([*make, f"-j{jobs}", "bzImage", "modules"], check=True)


def copy(tree: Path, place: Path) -> None:
    """Replace a tree by a copy of another, with the times of its files."""
    subprocess.run(["rm", "-rf", place], check=True)
    subprocess.run(["cp", "-a", "--reflink=auto", f"{tree}/.", place], check=True)


def kernel(source: Path, trees: Path, name: str, jobs: str) -> Path:
    """The built tree of the child, or of the parent that a patch makes.

    All are built in one place and copied from there, because objects know the place. A parent
    begins with the child's objects, so that only what its patch changes is compiled.
    """
    tree = trees / name
    if (tree / IMAGE).exists():
        return tree
    work = trees / "work"
    change: AbstractContextManager[None] = nullcontext()
    if name != CHILD:
        copy(kernel(source, trees, CHILD, jobs), work)
        change = patched(source, REVERTS / f"{name}.patch")
    with change:
        build(source, work, jobs)
    copy(work, trees / "part")
    (trees / "part").rename(tree)
    return tree


def simulate(change: Change, tree: Path, output: Path, seeds: str, jobs: str) -> bool:
    """Simulate a side of a change; whether all its cells are good."""
    done = fscale(
        *("simulate", "--kernel-tree", tree, "--machine", MACHINE, "--fs", change.filesystem),
        *("--workload", change.workload, "--cores", ",".join(map(str, change.cores))),
        *(word for option in change.options for word in ("--option", option)),
        *("--seeds", seeds, "--jobs", jobs, "--output", output),
    )
    return done.returncode == 0


def main() -> int:
    """Build and simulate what is missing. Exits 1 where a cell is not good."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--changes", help="names, separated by commas; by default all")
    parser.add_argument("--seeds", default="3")
    parser.add_argument("--jobs", default="1")
    given = parser.parse_args()
    refuse_changed(given.source)
    wanted = given.changes.split(",") if given.changes else [one.name for one in changes()]
    good = True
    for change in changes():
        if change.name not in wanted:
            continue
        for side, name in (("parent", change.patch), (CHILD, CHILD)):
            tree = kernel(given.source, given.build, name, given.jobs)
            output = given.output / change.name / side
            good &= simulate(change, tree, output, given.seeds, given.jobs)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
