# SPDX-License-Identifier: GPL-2.0-only
"""Builds the packages in a minimal root of each Debian release, and uses them in another one.

`make test-packages`, half an hour on two idle cores. Exits with 1 where something fails.
"""

import argparse
import sys

from tests.packages import KINDS, SUITES, build, use


def main() -> int:
    """Say what became of each package in each release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", choices=SUITES, action="append", help="default: all")
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: all")
    given = parser.parse_args()
    failed = []
    for suite in given.suite or SUITES:
        for kind in given.kind or KINDS:
            good = build(kind, suite) and use(kind, suite, everything=True)
            print(f"{kind} on Debian {suite}: {'works' if good else 'FAILS'}", flush=True)
            failed += [] if good else [suite]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
