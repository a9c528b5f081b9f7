# SPDX-License-Identifier: GPL-2.0-only
"""`python3 -m tests.lanefs.functions DIRECTORY [TEST]...`: on whatever file system that is."""

import sys
from pathlib import Path

import tests.lanefs.functions  # noqa: F401 - registers the tests
from tests.lanefs.functions import harness

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    verdicts = harness.all_of(sys.argv[2:], harness.elsewhere(Path(sys.argv[1])))
    sys.exit(any(verdict.status == "failed" for verdict in verdicts))
