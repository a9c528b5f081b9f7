# SPDX-License-Identifier: GPL-2.0-only
"""Compares two kernels that another machine boots in turn; it measures all points in each boot."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fscale.ab.boots import Boots
from fscale.ab.guests import BootedSide, BootPlan, boot_directory, complete
from fscale.farm.bootable import Bootable
from fscale.farm.engine import BootingEngine
from fscale.runner.request import Request
from fscale.runner.run import execute_on
from fscale.runner.tasks import plan
from fscale.vm import untrusted
from fscale.vm.steps import Steps


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

    def request_of(self, name: str, repetition: int) -> Request:
        """What a boot of a side measures, and where its results go."""
        variant = self.sides[name].variant
        overrides = self.request.overrides | {"repetitions": 1, "control": 0}
        if variant.name:
            overrides["filesystems"] = [variant.filesystem]
        output = boot_directory(self.output, name, repetition)
        return replace(
            self.request, output=output, overrides=overrides, seed=self.seed + repetition
        )


class MachineBoots(Boots):
    """See fscale.ab.loop.Source."""

    plan: MachinePlan

    def __init__(self, plan: MachinePlan, steps: Steps, engine: BootingEngine) -> None:
        super().__init__(plan, steps)
        self._engine = engine

    def boot(self, name: str, repetition: int) -> None:
        """See Boots. Cells of a boot that was interrupted are measured again, in one boot."""
        request, side = self.plan.request_of(name, repetition), self.plan.sides[name]
        if complete(request.output):
            return
        untrusted.remove(request.output)
        self.steps.note(f"boot {repetition} of side {name}: {side.variant.text}")
        self._engine.boot(side.kernel)
        planned = plan(request, 0, self._engine)
        side.kernel.check(planned.run.machine)
        execute_on(self._engine, planned)
