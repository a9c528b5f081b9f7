# SPDX-License-Identifier: GPL-2.0-only
"""Compares two kernels that another machine boots in turn; it measures all points in each boot."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fscale.ab import broken_boots
from fscale.ab.boots import Boots
from fscale.ab.guests import BootedSide, BootPlan, boot_directory, complete
from fscale.ab.point import ONE_EACH, PairedPoint
from fscale.farm.bootable import Bootable, Broken
from fscale.farm.connection import Lost
from fscale.farm.engine import BootingEngine
from fscale.model.errors import FscaleError
from fscale.model.store import Store
from fscale.runner.request import Request
from fscale.runner.run import execute_on
from fscale.runner.tasks import plan
from fscale.vm import untrusted
from fscale.vm.steps import Steps

MOST_BROKEN = 2
"""broken boots after which a side is given up"""


@dataclass(frozen=True)
class KernelSide(BootedSide):
    """One side, and its kernel."""

    kernel: Bootable


@dataclass(frozen=True, kw_only=True)
class MachinePlan(BootPlan):
    """A planned comparison on another machine."""

    sides: Mapping[str, KernelSide]
    request: Request
    """what a boot measures"""

    def recorded(self) -> dict[str, Any]:
        """See BootPlan. A rebuilt kernel keeps its name; where modules changed, its build id."""
        # The directory of a prepared kernel is named by what it was made from.
        images = {name: side.kernel.image for name, side in self.sides.items()}
        kernels = {name: image.parent.name for name, image in images.items() if image}
        return super().recorded() | ({"kernels": kernels} if kernels else {})

    def request_of(self, name: str, repetition: int) -> Request:
        """What a boot of a side measures, and where its results go."""
        variant = self.sides[name].variant
        overrides = self.request.overrides | ONE_EACH
        if variant.name:
            overrides["filesystems"] = [variant.filesystem]
        output = boot_directory(self.output, name, repetition)
        return replace(
            self.request, output=output, overrides=overrides, seed=self.seed + repetition
        )


class MachineBoots(Boots):
    """See fscale.ab.loop.Source.

    A kernel that does not come up, or does not stay up, has no figures in that boot: its cells are
    errors. The second such boot of a side is its last.
    """

    plan: MachinePlan

    def __init__(self, plan: MachinePlan, steps: Steps, engine: BootingEngine) -> None:
        super().__init__(plan, steps)
        self._engine = engine
        self._broken: Counter[str] = Counter()
        """broken boots of each side"""
        self._down: dict[tuple[str, int], str] = {}
        """boots of this round in which nothing was measured, and why"""

    def patience(self, point: PairedPoint) -> int:
        """See Source; no broken side is booted for ever."""
        given_up = any(count >= MOST_BROKEN for count in self._broken.values())
        return 0 if given_up else super().patience(point)

    def boot(self, name: str, repetition: int) -> None:
        """See Boots. Cells of a boot that was interrupted are measured again, in one boot.

        Raises:
            Broken: the new kernel does not run, and a bisection has no use for its errors.
            Lost: the connection broke, and in the repeated boot again.
        """
        request, side = self.plan.request_of(name, repetition), self.plan.sides[name]
        if complete(request.output):
            self._broken[name] += broken_boots.is_one(request.output)
            return
        if self._broken[name] >= MOST_BROKEN:
            self._down[name, repetition] = f"{side.kernel.release} was given up"
            return
        self.steps.note(f"boot {repetition} of side {name}: {side.variant.text}")
        try:
            try:
                self._measure(name, request)
            except Lost as error:
                self.steps.note(f"{error}; the boot is repeated")
                self._measure(name, request)
        except Broken as error:
            self._down[name, repetition] = self._explain(name, request, error)

    def _measure(self, name: str, request: Request) -> None:
        for path in (request.output, broken_boots.log_of(request.output)):
            untrusted.remove(path)
        kernel = self.plan.sides[name].kernel
        self._engine.boot(kernel)
        planned = plan(request, 0, self._engine)
        kernel.check(planned.run.machine)
        try:
            execute_on(self._engine, planned)
        except Broken as error:
            broken_boots.save_crashed(planned, self._explain(name, request, error))

    def _explain(self, name: str, request: Request, error: Broken) -> str:
        """Store what is known about a broken boot, and return it in a line."""
        if self.plan.bisecting and name == "A":
            raise FscaleError(f"the good kernel does not run: {error}")
        if self.plan.bisecting:
            raise error
        self._broken[name] += 1
        reason = f"{self.plan.sides[name].kernel.release}: {error}"
        line = broken_boots.save_evidence(request.output, reason, self._engine.evidence())
        self.steps.note(line)
        return line

    def round_ended(self) -> None:
        """See Boots: what a broken boot lacks is told by one of the same side, or the other."""
        for (name, repetition), reason in self._down.items():
            output, side = boot_directory(self.plan.output, name, repetition), self.plan.sides[name]
            boots = sorted(self.boots(repetition + 1), key=lambda boot: boot[0] != name)
            others = (boot_directory(self.plan.output, *boot) for boot in boots)
            like = next(filter(complete, others), None)
            if like is None:
                raise FscaleError(f"neither kernel runs: {reason}")
            broken_boots.save_down(output, Store(like), side.variant, side.kernel.release, reason)
        self._down.clear()
