# SPDX-License-Identifier: GPL-2.0-only
"""Checks what two guests are asked for, and prepares both."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.compare.repetitions import minimum_repetitions
from analysis.compare.settings import METRICS, Settings
from analysis.compare.sliced import LEAST_PAIRS
from fscale.ab.guest_boots import GuestBoots
from fscale.ab.guest_pairs import GuestPairs
from fscale.ab.guests import GuestPlan, Guests, both
from fscale.model.errors import FscaleError
from fscale.model.variant import Variant
from vm.options import GuestOptions
from vm.steps import Steps


def make(
    base: Variant,
    new: Variant,
    arguments: Sequence[str],
    *,
    slices: bool,
    files: Mapping[str, Path],
    options: GuestOptions,
    output: Path,
    seed: int,
    settings: Settings,
    repetitions: int,
    steps: Steps,
    bisecting: bool = False,
) -> Guests:
    """Check two sides, and build what they need; `arguments` are those of `fscale run`.

    The sides, not the `options`, say which kernels boot. A step of a bisection waits for no more
    than it needs: where guests in slices are emulated and the `settings` name no metrics,
    instructions are counted and nothing is timed. Raises FscaleError.
    """
    if slices:
        _check_pairs(arguments, options, repetitions)
    else:
        _check_boots(settings, repetitions)
    sides, emulator = both(base, new, arguments, files=files, options=options, steps=steps)
    emulated = sides["A"].guest.accelerator != "kvm"  # as B's is
    if slices and bisecting and emulated and settings.metrics == METRICS:
        steps.note("without KVM what is timed is the emulator: instructions are counted instead")
        settings = settings.model_copy(update={"metrics": ("count",)})
    plan = GuestPlan(
        sides,
        emulator,
        arguments,
        files,
        output.resolve(),
        seed,
        settings,
        repetitions,
        options.timeout,
        bisecting,
    )
    return GuestPairs(plan, steps) if slices else GuestBoots(plan, steps)


def _check_pairs(arguments: Sequence[str], options: GuestOptions, repetitions: int) -> None:
    if options.deterministic:
        raise FscaleError(
            "--slices counts instructions in guests of its own: leave --deterministic out, or give "
            "--metric count to have only those"
        )
    if any(argument.split("=")[0] == "--duration" for argument in arguments):
        raise FscaleError("in slices a cell works as long as its turns take: leave --duration out")
    if 0 < repetitions < LEAST_PAIRS:
        raise FscaleError(f"{repetitions} pairs are too few: give {LEAST_PAIRS} or more")


def _check_boots(settings: Settings, repetitions: int) -> None:
    """So many boots could find a change, at least of a single point."""
    fewest = minimum_repetitions(settings, 1, interleaved=True)
    if 0 < repetitions < fewest:
        raise FscaleError(
            f"--repetitions {repetitions}: the change of a single point is found with {fewest} "
            f"boots of each side or more; give --repetitions {fewest}, or leave it out"
        )
