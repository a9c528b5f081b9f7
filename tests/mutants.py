# SPDX-License-Identifier: GPL-2.0-only
"""`make mutants`: changes the code that judges, a thousandfold, and says what no unit test noticed.

`python -m tests.mutants [FILE...]`; what is changed, and what not, is in `[tool.mutmut]` of
pyproject.toml. `.venv/bin/mutmut show NAME` shows a mutant.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1]
MUTANTS = HERE / "mutants"
WANTED = 0.95  # of all, killed
NOTICED = {1, 3, 36, -24, 152, 255}  # as mutmut has them: a test failed, or ran on and on


def tried(files: list[str]) -> dict[str, dict[str, bool]]:
    """File -> mutant -> whether a test noticed it, of those that were run."""
    found = {}
    for path in sorted(MUTANTS.rglob("*.meta")):
        name = str(path.relative_to(MUTANTS)).removesuffix(".meta")
        codes = json.loads(path.read_text())["exit_code_by_key"]
        if codes and (not files or name in files):
            found[name] = {mutant: code in NOTICED for mutant, code in codes.items()}
    return found


def main() -> int:
    """Run mutmut from the start, since it does not see that a test has changed."""
    files = [str(Path(name).resolve().relative_to(HERE)) for name in sys.argv[1:]]
    shutil.rmtree(MUTANTS, ignore_errors=True)
    patterns = [name.removesuffix(".py").replace("/", ".") + ".*" for name in files] or ["*"]
    mutmut = Path(sys.executable).with_name("mutmut")
    subprocess.run([mutmut, "run", *patterns], cwd=HERE, check=True, stdout=subprocess.DEVNULL)
    found = tried(files)
    for name, mutants in found.items():
        for mutant, noticed in mutants.items():
            if not noticed:
                print(mutant)
        print(f"{name}: {sum(mutants.values())} of {len(mutants)} killed")
    results = [noticed for mutants in found.values() for noticed in mutants.values()]
    print(f"all: {sum(results)} of {len(results)} killed")
    return 0 if sum(results) >= WANTED * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
