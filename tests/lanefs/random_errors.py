# SPDX-License-Identifier: GPL-2.0-only
"""Random operations while requests fail at random; afterwards what is on the device is sound."""

import contextlib
import subprocess
import tempfile
from collections.abc import Sequence

from tests.lanefs.device import MOUNT, SHUTDOWN_NOW, Fault, Volume, shut_down
from tests.lanefs.functions.faulty import RandomErrors, random_errors
from tests.lanefs.functions.harness import Skipped

# One request in so many fails, in turns.
RATES = (1000, 300, 100, 30, 10)
# Seconds in which the load ends: it does with the first result that an error made different.
LIMIT = 240


def _load(argv: Sequence[str]) -> None:
    """Random operations; what they find is not judged, only that they end."""
    try:
        subprocess.run(argv, capture_output=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise Fault(f"{' '.join(argv)} did not end within {LIMIT} s") from None
    with contextlib.suppress(OSError):
        shut_down(MOUNT, SHUTDOWN_NOW)


def _round(made: Volume, errors: RandomErrors, one_in: int, load: Sequence[str]) -> int:
    """A new file system under load; how many requests failed."""
    with tempfile.TemporaryDirectory(dir="/run") as reference:
        made.mount()
        errors.begin(one_in)
        _load([*load, str(MOUNT), reference])
        made.unmount()
        failed = errors.end()
        with made.mounted():
            pass
    return failed


def run(made: Volume, mkfs: Sequence[str], rounds: int, load: Sequence[str]) -> str:
    """Rounds of `load`, which is given a seed and two directories; what was found."""
    if made.fs.kernel != "lanefs":
        return "nothing to check: other file systems note errors, which their fsck tells"
    failed = 0
    try:
        with random_errors(made.device) as errors:
            for number in range(rounds):
                made.make(*mkfs)
                seeded = [*load, f"--seed={number + 1}"]
                failed += _round(made, errors, RATES[number % len(RATES)], seeded)
    except Skipped as skipped:
        return f"skipped: {skipped}"
    if failed < rounds / 2:
        raise Fault(f"only {failed} requests failed in {rounds} rounds")
    return f"{failed} requests failed in {rounds} rounds, and fsck found nothing after recovery"
