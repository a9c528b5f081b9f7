# SPDX-License-Identifier: GPL-2.0-only
"""Compares curves with the statements of FxMark's paper on the same workload and file system."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.paper.statements import statements
from fscale.analysis.skill import amdahl
from fscale.analysis.summary import Ratio
from fscale.model.paper import Claim, Shape, Slope

# Shares of linear at the highest core count. Between them a curve is neither.
SCALES, DOES_NOT = 0.7, 0.4
# A curve has risen when it reaches this part of its highest rate, and fallen when it has less.
RISEN = 0.9
# If the whole interval of the speed-up is below this, the curve gains nothing.
GAIN = 1.05
# The core count to assume if the paper gives none at which a curve stops scaling: one socket.
SOCKET = 10
# A curve that turns at n cores can be told from a line at this many times n.
BEYOND = 2
TWO = 2  # the core count that Amdahl's law needs beside one

Verdict = Literal["agrees", "agrees so far", "differs", "neither", "too few cores"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class MeasuredShape:
    """The shape of a measured or simulated curve that begins at its base."""

    cores: int
    speedup: Ratio
    part: float
    """share of linear at the highest core count"""
    peak: int
    """the core count of the highest rate"""
    rises_to: int
    """the fewest cores with `RISEN` of the highest rate"""
    fell: bool

    @property
    def shape(self) -> Shape | None:
        """The shape; None if it is neither."""
        return shape_of(self.part)

    @property
    def behind(self) -> Slope | None:
        """The slope behind the peak; None if the peak is at the most cores."""
        if self.peak == self.cores:
            return None
        return "falls" if self.fell else "flat"


def shape_of(part: float) -> Shape | None:
    """The shape of a curve with this share of linear; None if it is neither."""
    if part >= SCALES:
        return "scales"
    return "does not" if part <= DOES_NOT else None


def measured_shape(curve: Curve) -> MeasuredShape | None:
    """The shape of a curve; None without a base or another point."""
    speedup = curve.top_speedup
    if speedup is None:
        return None
    highest = curve.peak.median
    return MeasuredShape(
        curve.top.key.cores,
        speedup,
        speedup.value / curve.linear,
        curve.peak.key.cores,
        next(p.key.cores for p in curve.points if p.median >= RISEN * highest),
        curve.top.median < RISEN * highest,
    )


@dataclass(frozen=True)
class Agreement:
    """A curve of ours and the claim about it."""

    panel: Panel
    curve: Curve
    paper: Claim
    ours: MeasuredShape

    @property
    def reaches(self) -> bool:
        """Whether our core counts would show a curve that turns where the paper's does."""
        return self.ours.cores >= self.enough

    @property
    def enough(self) -> int:
        """The core count that would show it."""
        return BEYOND * (self.paper.turns or SOCKET)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the shape, as far as our core counts reach."""
        mine = self.ours
        gains_nothing = mine.speedup.high <= GAIN
        if self.paper.shape == "scales":
            if mine.shape == "does not" or gains_nothing:
                return "differs"
            if mine.shape is None:
                return "neither"
            return "agrees" if self.reaches else "agrees so far"
        if mine.shape == "does not" or gains_nothing:
            return "agrees"
        if not self.reaches:
            return "too few cores"
        return "differs" if mine.shape == "scales" else "neither"

    @property
    def turn(self) -> Verdict | None:
        """The verdict on the core count at which the curve turns: within a factor of 2 it agrees.

        None if the paper names none.
        """
        turns = self.paper.turns
        if turns is None:
            return None
        rises_to = self.ours.rises_to
        if not self.reaches and rises_to == self.ours.cores:
            return "too few cores"  # it may still rise
        if rises_to < turns / BEYOND or rises_to > BEYOND * turns:
            return "differs"
        return "agrees" if self.reaches or self.ours.fell else "too few cores"

    @property
    def slope(self) -> Verdict | None:
        """The verdict on the slope behind the peak; None if the paper says nothing of it."""
        behind = self.ours.behind
        if self.paper.then is None or behind == self.paper.then:
            return self.paper.then and "agrees"
        return "differs" if self.reaches or behind else "too few cores"


def compare_with_paper(page: Page) -> list[Agreement]:
    """The curves of a page about which the paper makes a statement, in the page's order.

    Workloads with other options than the paper's, and sides of a comparison, are left out.
    """
    return [
        Agreement(panel, curve, statement, mine)
        for panel, curve, statement in _known(page)
        if curve.top.key.options == statement.options and (mine := measured_shape(curve))
    ]


def right_shapes(rows: Sequence[Agreement]) -> dict[str, int]:
    """How many curves have the paper's shape, ours and those of predictors that need little.

    A share of agreement says little by itself: most statements are that a curve does not scale.
    Amdahl's law goes through our one and two cores, and has no curve right that lacks these.
    """
    return {
        "these curves": sum(row.ours.shape == row.paper.shape for row in rows),
        "always scales (linear)": sum(row.paper.shape == "scales" for row in rows),
        "always does not scale (flat)": sum(row.paper.shape == "does not" for row in rows),
        "Amdahl's law": sum(_amdahl(row) == row.paper.shape for row in rows),
    }


def _amdahl(row: Agreement) -> Shape | None:
    two = next((p for p in row.curve.points if p.key.cores == TWO), None)
    ratio = row.curve.speedup(two) if two else None
    if ratio is None:
        return None
    law = amdahl({TWO: ratio.value})
    return shape_of(law(row.ours.cores) / row.curve.linear)


def other_operations(page: Page) -> list[str]:
    """The workloads of a page whose options make another operation than the paper measured."""
    known = _known(page)
    return list(dict.fromkeys(p.name for p, c, one in known if c.top.key.options != one.options))


def _known(page: Page) -> Iterator[tuple[Panel, Curve, Claim]]:
    """The curves about whose workload and file system the paper makes a statement."""
    for panel, curve in page.curves:
        statement = statements().get((panel.workload, curve.filesystem, page.mode))
        if statement and not curve.side:
            yield panel, curve, statement


def with_turns(page: Page) -> Page:
    """The page with the core counts at which the paper's curves turn, as far as it reaches."""
    turns: dict[str, set[int]] = {}
    for one in compare_with_paper(page):
        if one.paper.turns and one.paper.turns <= page.cores[-1]:
            turns.setdefault(one.panel.name, set()).add(one.paper.turns)

    def marked(panel: Panel) -> Panel:
        return replace(panel, turns=tuple(sorted(turns.get(panel.name, ()))))

    return page.changed(marked)
