# SPDX-License-Identifier: GPL-2.0-only
"""Whether two sides were measured in one boot, within which alone alarms are known to be few."""

from fscale.model.results import Run

BETWEEN_BOOTS = (
    "the sides were measured in different boots: a boot moves figures by itself, by where it puts "
    "code and data in memory, and that counts as a change here, so that more than 1% of such "
    "comparisons may raise a false alarm (`fscale ab` has both sides in one boot, `fscale vm ab` a "
    "boot for each repetition)"
)


def between_boots(base: Run, new: Run, *, interleaved: bool) -> bool | None:
    """Whether what differs from boot to boot is counted as a change.

    None where a run does not record its boots. Interleaved sides share their boots, or have so many
    that a boot is a repetition.
    """
    if interleaved:
        return False
    if not base.machine.boots or not new.machine.boots:
        return None
    return len({*base.machine.boots, *new.machine.boots}) > 1
