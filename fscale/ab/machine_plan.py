# SPDX-License-Identifier: GPL-2.0-only
"""Checks the request for a comparison of kernels on another machine, and prepares the kernels."""

from collections.abc import Sequence

from fscale.ab.guest_plan import check_boots
from fscale.ab.machine_boots import KernelSide, MachinePlan
from fscale.analysis.compare.settings import Settings
from fscale.model.variant import Variant
from fscale.runner.request import Request, read_suite
from fscale.vm.bootable import bootable
from fscale.vm.steps import Steps


def make(
    base: Variant,
    new: Variant,
    request: Request,
    arguments: Sequence[str],
    settings: Settings,
    repetitions: int,
    steps: Steps,
    *,
    bisecting: bool = False,
) -> MachinePlan:
    """Check two sides, each of which names a kernel, and prepare what the machine gets.

    Raises:
        FscaleError: a side, the suite or the number of repetitions is not valid.
    """
    read_suite(request)
    check_boots(settings, repetitions)
    sides = {}
    for name, variant in (("A", base), ("B", new)):
        kernel = bootable(variant.kernel or "", variant.kernel_modules, steps)
        steps.note(f"side {name}, {variant.text}: kernel {kernel.release}")
        sides[name] = KernelSide(variant, kernel)
    return MachinePlan(
        sides=sides,
        arguments=arguments,
        output=request.output.resolve(),
        seed=1 if request.seed is None else request.seed,
        settings=settings,
        repetitions=repetitions,
        request=request,
        bisecting=bisecting,
    )
