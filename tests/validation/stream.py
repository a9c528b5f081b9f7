# SPDX-License-Identifier: GPL-2.0-only
"""The gate in a stream of patches, which is lanefs's own history: minutes and findings of each.

.venv/bin/python -m tests.validation.stream --patches 50 --output results/validation/stream

Each commit that changes the module is judged against the one before it, as `fscale gate` judges.
The boots of a commit are the new side of one comparison and the base of the next, so that a patch
costs one side's boots. A commit that changes no byte of the module but line numbers and debugging
data is not booted. Commits go back as far as mkfs.lanefs of today makes what the module can mount.
Whether a finding is true, a reader of the patch says.
"""

import argparse
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import TypeAdapter

from fscale.analysis.compare import wording
from fscale.analysis.compare.counted import judge
from fscale.analysis.reader import load
from fscale.model.paths import ROOT
from fscale.model.results import Cell
from tests.validation import gate
from tests.validation.gate import LANEFS, build, sources

KERNEL = "bookworm"
PLACES = (LANEFS, f"fscale/{LANEFS}")
SEEDS = 5
BUILT = re.compile(rb"/build/\.[^/]+/")
VARYING = (".modinfo", ".note.gnu.build-id", "__bug_table", ".BTF")


@dataclass
class Patch:
    """A commit and what the gate said of it."""

    commit: str
    subject: str
    booted: bool
    seconds: float
    """of building the module and of its boots"""
    counts: int = 0
    findings: list[str] = field(default_factory=list)


RECORD = TypeAdapter(list[Patch])


def git(*arguments: str) -> str:
    """The output of a git command in this repository."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def commits(number: int) -> list[tuple[str, str]]:
    """The last commits that change the module and the one before them, oldest first."""
    parts = [f"{place}/{part}" for place in PLACES for part in ("kernel", "core", "format.h")]
    log = git("log", "--format=%h %s", f"-{number + 1}", "HEAD", "--", *parts)
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in log.splitlines()][::-1]


def module(commit: str) -> Path:
    """The module of a commit."""
    place = next(one for one in PLACES if git("ls-tree", commit, f"{one}/Kbuild"))
    with TemporaryDirectory() as directory:
        sources(Path(directory), commit, place)
        return build(Path(directory) / place, KERNEL, commit)


def code(built: Path) -> bytes:
    """The bytes of a module without what differs although its code and its data are the same."""
    with TemporaryDirectory() as directory:
        bare = Path(directory) / "bare.ko"
        left_out = [word for section in VARYING for word in ("--remove-section", section)]
        subprocess.run(["objcopy", "--strip-debug", *left_out, built, bare], check=True)
        # Warnings name the file that they are in, with the directory in which it was built.
        return BUILT.sub(b"", bare.read_bytes())


def boots(built: Path, number: int, output: Path, given: argparse.Namespace) -> list[Cell]:
    """The cells of a side, simulated as the gate does, with seeds that no other commit has."""
    side = ("--kernel", KERNEL, "--module", built, "--cores", "4")
    seed = ("--seed", str(1 + number * given.boots))
    if not gate.boots(LANEFS, given.workloads, given.boots, given.jobs, output, *side, *seed):
        raise SystemExit(f"{output}: not all cells are good")
    return load(output).cells


def show(patches: Sequence[Patch]) -> None:
    """Print each finding, and the sums."""
    for patch in patches:
        for finding in patch.findings:
            print(f"{patch.commit} {patch.subject}: {finding}")
    booted = [patch for patch in patches if patch.booted]
    print(
        f"{len(patches)} patches, {len(booted)} of them booted, "
        f"{sum(patch.counts for patch in booted)} counts; "
        f"{sum(bool(patch.findings) for patch in booted)} patches with findings"
    )
    if booted:
        minutes = [patch.seconds / 60 for patch in booted]
        print(
            f"{statistics.median(minutes):.1f} minutes a booted patch, at most {max(minutes):.1f}"
        )


def main() -> int:
    """Judge each patch; those that an earlier call has judged are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patches", type=int, default=50)
    parser.add_argument("--workloads", default="DRBL,DWOL,MRPL,MWCL,MWUL,MWRL")
    parser.add_argument("--boots", type=int, default=SEEDS, help="boots of a side")
    parser.add_argument("--jobs", default="1")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    path = given.output / "patches.json"
    done = RECORD.validate_json(path.read_bytes()) if path.exists() else []
    known = {patch.commit: patch for patch in done}
    judged: list[Patch] = []
    base: list[Cell] = []
    before = b""
    for number, (commit, subject) in enumerate(commits(given.patches)):
        started = time.monotonic()
        built = module(commit)
        present = code(built)
        booted = present != before
        before = present
        cells = boots(built, number, given.output / commit, given) if booted else base
        seconds = time.monotonic() - started
        judgements = judge(base, cells) if base and booted else []
        findings = [wording.judgement_line(one) for one in judgements if one.verdict != "same"]
        base = cells
        if number == 0:  # nothing is before it
            continue
        patch = Patch(commit, subject, booted, seconds, len(judgements), findings)
        judged.append(known.setdefault(commit, patch))
        print(f"{commit} {subject}: {'; '.join(findings) or 'same'}", flush=True)
        path.write_bytes(RECORD.dump_json(list(known.values()), indent=1))
    show(judged)
    return 0


if __name__ == "__main__":
    sys.exit(main())
