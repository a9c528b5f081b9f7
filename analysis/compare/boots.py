# SPDX-License-Identifier: GPL-2.0-only
"""Tells whether both sides were measured in one boot.

The rate of false alarms is known only for comparisons within a boot.
"""

from fscale.model.results import Run

BETWEEN_BOOTS = (
    "the sides were measured in different boots: each boot places code and data elsewhere in "
    "memory, which changes the figures and counts as a change here, so more than 1% of such "
    "comparisons may raise a false alarm (`fscale ab` measures both sides in one boot, `fscale vm "
    "ab` boots for each repetition)"
)


def between_boots(base: Run, new: Run, *, interleaved: bool) -> bool | None:
    """Whether differences between boots count as a change.

    None if a run does not record its boots. Interleaved sides share their boots, or each repetition
    is a boot of its own.
    """
    if interleaved:
        return False
    if not base.machine.boots or not new.machine.boots:
        return None
    return len({*base.machine.boots, *new.machine.boots}) > 1
