# SPDX-License-Identifier: GPL-2.0-only
"""Runs a planned comparison in guests, and reports how it ended."""

from fscale.ab import loop
from fscale.ab.guests import Booted, Guests
from fscale.ab.loop import Progress
from fscale.ab.progress_lines import ProgressLines
from fscale.model.errors import Interrupted
from fscale.model.terminal import print_line
from fscale.vm.boot import print_commands


def preview(source: Guests) -> None:
    """Print the boots of the first round."""
    for boot in source.first_round():
        print_commands(boot, source.plan.emulator)
    print_line("# further rounds follow until all is decided")


def execute(source: Booted, seconds: float) -> Progress:
    """Measure for at most `seconds`, and write the results.

    Rounds that an earlier, interrupted call finished are not measured again.

    Raises:
        GuestError: a guest panicked, hung or ran out of time; earlier rounds are kept.
        FscaleError: a guest could not measure, or the output contains another comparison.
        Interrupted: the user interrupted it.
    """
    lines = ProgressLines(source.steps, source.plan.settings.metrics)
    try:
        progress = loop.measure(source, source.plan.aim, seconds, lines)
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(
            "stopped; finished boots are kept, and the same command with the same --output resumes "
            "from there"
        ) from None
    source.finish(progress)
    for reason in progress.given_up.values():
        source.steps.note(f"gave up on a point: {reason}")
    if progress.out_of_time:
        source.steps.note(
            f"time limit reached (--max-minutes); {len(progress.open)} points are undecided"
        )
    return progress
