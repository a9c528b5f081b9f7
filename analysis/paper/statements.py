# SPDX-License-Identifier: GPL-2.0-only
"""The claims of FxMark's paper about the shapes of its curves."""

from functools import cache
from pathlib import Path

from fscale.model.paper import Claim, load_paper, questions


@cache
def statements() -> dict[tuple[str, str, str], Claim]:
    """The claims by workload, file system and mode, in the order of the paper."""
    return {
        (asked.workload, asked.filesystem, asked.claim.mode): asked.claim
        for asked in questions(load_paper(Path("fxmark")).claim)
        if asked.claim.shape and not asked.claim.cannot
    }
