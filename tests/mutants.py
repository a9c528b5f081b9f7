# SPDX-License-Identifier: GPL-2.0-only
"""`make mutants`: changes the code that judges, a thousandfold, and says what no unit test noticed.

`python -m tests.mutants [FILE...]`; what is changed, and what not, is in `[tool.mutmut]` of
pyproject.toml. `.venv/bin/mutmut show NAME` shows a mutant.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from fscale.model.paths import PACKAGE, ROOT

MUTANTS = ROOT / "mutants"
WANTED = 0.95  # of all, killed
NOTICED = {1, 3, 36, -24, 152, 255}  # as mutmut has them: a test failed, or ran on and on


def path_in_package(name: str) -> Path:
    """A file as mutmut names it: below fscale/, through the links there."""
    # normpath, because resolve() would replace fscale/analysis by analysis.
    path = Path(os.path.normpath(Path.cwd() / name)).relative_to(ROOT)
    return path if path.parts[0] == PACKAGE.name else PACKAGE.name / path


def read_outcomes(files: list[Path]) -> dict[Path, dict[str, bool]]:
    """File -> mutant -> whether a test noticed it, of those that were run."""
    outcomes = {}
    for path in sorted(MUTANTS.rglob("*.meta")):
        file = path.relative_to(MUTANTS).with_suffix("")
        codes = json.loads(path.read_text())["exit_code_by_key"]
        if codes and (not files or file in files):
            outcomes[file] = {mutant: code in NOTICED for mutant, code in codes.items()}
    return outcomes


def main() -> int:
    """Run mutmut from the start, since it does not see that a test has changed."""
    files = [path_in_package(name) for name in sys.argv[1:]]
    shutil.rmtree(MUTANTS, ignore_errors=True)
    patterns = [".".join(file.with_suffix("").parts) + ".*" for file in files] or ["*"]
    mutmut = Path(sys.executable).with_name("mutmut")
    subprocess.run([mutmut, "run", *patterns], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    outcomes = read_outcomes(files)
    for file, mutants in outcomes.items():
        for mutant, noticed in mutants.items():
            if not noticed:
                print(mutant)
        print(f"{file}: {sum(mutants.values())} of {len(mutants)} killed")
    results = [noticed for mutants in outcomes.values() for noticed in mutants.values()]
    print(f"all: {sum(results)} of {len(results)} killed")
    return 0 if sum(results) >= WANTED * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
