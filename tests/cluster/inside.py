# SPDX-License-Identifier: GPL-2.0-only
"""The part of `python -m tests.cluster` that runs in the root: the first process of its namespace.

Arguments: names of proofs. It prints the seconds of each.
"""

import sys
import time
import traceback

from tests.cluster.proofs import EPILOG, PROOFS, SCALE
from tests.cluster.slurm import LOGS, cluster


def main(names: list[str]) -> int:
    """Start the cluster and try each proof; a proof that fails does not end the others."""
    began = time.monotonic()
    failed = []
    with cluster(EPILOG) as nodes:
        _print(began, "two nodes are idle")
        for name in names:
            began = time.monotonic()
            try:
                found = (PROOFS | SCALE)[name](nodes)
            except Exception:
                traceback.print_exc()
                failed.append(name)
                found = "FAILS"
            _print(began, f"{name}: {found}")
    if failed:
        for log in sorted(LOGS.iterdir()):
            print(f"{log}:", *log.read_text().splitlines()[-20:], sep="\n", file=sys.stderr)
    return 1 if failed else 0


def _print(began: float, text: str) -> None:
    print(f"{time.monotonic() - began:6.1f} s: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
