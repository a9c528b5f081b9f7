# SPDX-License-Identifier: GPL-2.0-only
"""Builds the packages in a minimal root of each Debian release, and uses them in another one.

`make test-packages`, half an hour on two idle cores. Exits with 1 where something fails.
"""

import argparse
import sys

from tests.packages import SUITES, build, use


def main() -> int:
    """Say what became of each package in each release."""
    parser = argparse.ArgumentParser(description=__doc__)
    every = sorted({suite for suites in SUITES.values() for suite in suites})
    parser.add_argument("--suite", choices=every, action="append", help="default: all")
    parser.add_argument("--kind", choices=SUITES, action="append", help="default: all")
    given = parser.parse_args()
    failed = []
    for kind in given.kind or SUITES:
        for suite in SUITES[kind]:
            if given.suite and suite not in given.suite:
                continue
            good = build(kind, suite) and use(kind, suite, everything=True)
            print(f"{kind} on Debian {suite}: {'works' if good else 'FAILS'}", flush=True)
            failed += [] if good else [suite]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
