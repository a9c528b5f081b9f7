# SPDX-License-Identifier: GPL-2.0-only
"""`git bisect run fscale bisect` with a module in guests: is the bad commit named, and how soon?

    .venv/bin/python -m tests.validation.bisect --output results/validation/bisect

A repository of eight commits of lanefs; one of them makes lanefs_handle_start() slower
(plants/delay.patch). Prints what git names, and seconds; exits with 1 where it is another commit.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from fscale.model.paths import ROOT
from tests.validation.gate import PATCHES, module, sources

COMMITS = 8
AUTHOR = ("-c", "user.name=planted", "-c", "user.email=planted@example.org")
BUILT = "built.ko"


def git(tree: Path, *arguments: str | Path) -> str:
    """What a git command of the repository prints."""
    argv = ["git", "-C", str(tree), *AUTHOR, *map(str, arguments)]
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def repository(tree: Path, bad: int) -> list[str]:
    """Make the repository; its commits, the oldest first. Number `bad` of them has the plant."""
    sources(tree)
    git(tree, "init", "--quiet")
    (tree / ".gitignore").write_text(f"{BUILT}\n")
    commits = []
    for number in range(COMMITS):
        if number == bad:
            git(tree, "apply", PATCHES / "delay.patch")
        (tree / "lanefs/README.md").write_text(f"Commit {number}.\n")
        git(tree, "add", "--all")
        git(tree, "commit", "--quiet", "--message", f"Commit {number}")
        commits.append(git(tree, "rev-parse", "HEAD"))
    return commits


def main() -> int:
    """Bisect from the newest commit to the oldest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--bad", type=int, default=5, choices=range(1, COMMITS))
    parser.add_argument("--workload", default="MWCL")
    parser.add_argument("--kernel", default="bookworm")
    given = parser.parse_args()
    good = module(None, given.kernel)
    with TemporaryDirectory() as directory:
        tree = Path(directory)
        commits = repository(tree, given.bad)
        git(tree, "bisect", "start", commits[-1], commits[0])
        command = ROOT / "bin" / "fscale"
        build = f'cp "$({command} vm module build lanefs --kernel {given.kernel})" {BUILT}'
        began = time.monotonic()
        done = subprocess.run(
            [
                *("git", "bisect", "run", command, "bisect", "--output", given.output.resolve()),
                *("--base", f"lanefs:kernel={given.kernel}:module={good}"),
                *("--new", f"lanefs:kernel={given.kernel}:module={tree / BUILT}"),
                *("--workload", given.workload, "--cores", "1"),
                *("--", "sh", "-c", build),
            ],
            cwd=tree,
            check=False,
        )
        found = git(tree, "rev-parse", "refs/bisect/bad")
    named = commits.index(found)
    print(f"git names commit {named}, planted in {given.bad}; {time.monotonic() - began:.0f} s")
    return int(done.returncode != 0 or named != given.bad)


if __name__ == "__main__":
    sys.exit(main())
