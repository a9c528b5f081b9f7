# SPDX-License-Identifier: GPL-2.0-only
"""Checks the request for a comparison in guests, and prepares both guests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fscale.ab.guest_boots import GuestBoots
from fscale.ab.guest_pairs import GuestPairs
from fscale.ab.guests import GuestPlan, Guests, make_guests
from fscale.ab.slices import PACED, why_oversubscribed
from fscale.analysis.compare.repetitions import minimum_repetitions
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import MIN_PAIRS
from fscale.analysis.metrics import METRICS, NAMED
from fscale.farm.engine import Engine
from fscale.model.config import Suite
from fscale.model.errors import FscaleError
from fscale.model.variant import Variant
from fscale.vm.request import GuestRequest
from fscale.vm.steps import Steps


def make(
    base: Variant,
    new: Variant,
    arguments: Sequence[str],
    *,
    suite: Suite,
    slices: bool,
    files: Mapping[str, Path],
    options: GuestRequest,
    output: Path,
    seed: int,
    settings: Settings,
    repetitions: int,
    steps: Steps,
    bisecting: bool = False,
    engine: Engine | None = None,
) -> Guests:
    """Check two sides, and build what they need; `arguments` of `fscale run` measure the `suite`.

    The sides, not the `options`, determine which kernels boot. A step of a bisection measures no
    more than it needs: if guests in slices are emulated and the `settings` have the default
    metrics, it counts instructions and times nothing. With an `engine`, guests boot on its
    machines, which is possible only if they count. Raises FscaleError.
    """
    if engine and not bisecting:
        _check_counts(settings)
    if slices:
        _check_pairs(arguments, options, settings, repetitions)
        reason = why_oversubscribed(max(suite.worker_counts))
        if any(options.get("rate") for options in suite.options.values()):
            reason = PACED
        if reason:
            raise FscaleError(f"cannot measure in slices: {reason}; leave --slices out")
    else:
        check_boots(settings, repetitions)
    sides, emulator = make_guests(
        *(base, new, suite.filesystems), files=files, options=options, steps=steps
    )
    emulated = sides["A"].guest.accelerator != "kvm"  # as B's is
    if slices and bisecting and emulated and settings.metrics == METRICS:
        steps.note("without KVM, times are those of the emulator: counting instructions instead")
        settings = settings.model_copy(update={"metrics": ("count",)})
    if engine:
        _check_counts(settings)
    plan = GuestPlan(
        sides=sides,
        emulator=emulator,
        arguments=arguments,
        files=files,
        output=output.resolve(),
        seed=seed,
        settings=settings,
        repetitions=repetitions,
        timeout=options.timeout,
        bisecting=bisecting,
    )
    return GuestPairs(plan, steps, engine) if slices else GuestBoots(plan, steps)


def _check_pairs(
    arguments: Sequence[str], options: GuestRequest, settings: Settings, repetitions: int
) -> None:
    if named := [metric for metric in settings.metrics if metric in NAMED]:
        raise FscaleError(
            f"--metric {named[0]} cannot be judged by slices in guests, which report no latencies, "
            "fairness and energy turn by turn; leave --slices out, so that boots are compared"
        )
    if options.deterministic:
        raise FscaleError(
            "--deterministic cannot be used with --slices, which counts instructions in separate "
            "guests; leave --deterministic out, or give --metric count to run only those guests"
        )
    if any(argument.split("=")[0] == "--duration" for argument in arguments):
        raise FscaleError(
            "--duration cannot be used with --slices, where a cell lasts as long as its turns; "
            "leave --duration out"
        )
    if 0 < repetitions < MIN_PAIRS:
        raise FscaleError(
            f"{repetitions} pairs are too few for a verdict; give {MIN_PAIRS} or more"
        )


def _check_counts(settings: Settings) -> None:
    """FscaleError if guests do not only count, because they are to boot on other machines."""
    if settings.metrics != ("count",):
        raise FscaleError(
            "--on: guests of other machines can count instructions, but their times depend on what "
            "else these machines do; give --metric count, or leave --on out"
        )


def check_boots(settings: Settings, repetitions: int) -> None:
    """FscaleError if that many boots cannot detect the change of even a single point."""
    fewest = minimum_repetitions(settings, 1, interleaved=True)
    if 0 < repetitions < fewest:
        raise FscaleError(
            f"--repetitions {repetitions} is too few: it takes at least {fewest} boots of each "
            f"side to detect the change of a single point; give --repetitions {fewest}, or leave "
            "it out"
        )
