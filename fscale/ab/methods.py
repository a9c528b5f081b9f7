# SPDX-License-Identifier: GPL-2.0-only
"""The ways to measure two sides, with the options and the parts of a side that each supports."""

from enum import Enum

from fscale.farm.engine import BOOTING, name_of
from fscale.model.errors import FscaleError
from fscale.model.variant import BINARY, OF_FILESYSTEM, OF_FRESH, OF_GUEST, Variant

_ON_THIS_MACHINE = ("device", "directory", "yes_format", "binary", "wait")
_OF_QEMU = ("filesystem", "smp", "memory", "accel", "deterministic", "append", "timeout")
_IN_GUESTS = ("fs", *_OF_QEMU)
_OF_BOOTS = ("reset_command", "console_command", "boot_timeout")
_MEASURED = (
    *("suite", "workload", "cores", "media", "mode", "duration", "option", "suite_keys"),
    *("max_minutes", "on", "dry_run", *_ON_THIS_MACHINE, *_IN_GUESTS, *_OF_BOOTS),
)
_SIDES_HERE = (*OF_FILESYSTEM, BINARY)
_SIDES_IN_GUESTS = (*OF_FRESH, *OF_GUEST)


class PairedMethod(Enum):
    """A way to measure two sides: its name, the parameters that it does not support, and the parts
    of a side that it supports.
    """

    CELLS = (
        "whole repetitions on this machine",
        ("count_margin", "allow_different", *_IN_GUESTS, *_OF_BOOTS),
        _SIDES_HERE,
    )
    """also covers slices, where they are possible"""
    SLICES = (
        "slices on this machine",
        ("duration", "count_margin", *_IN_GUESTS, *_OF_BOOTS),
        _SIDES_HERE,
    )
    BOOTS = (
        "guests that boot in turn",
        ("count_margin", "pause", "on", *_ON_THIS_MACHINE, *_OF_BOOTS),
        _SIDES_IN_GUESTS,
    )
    GUEST_SLICES = (
        "slices in guests",
        ("duration", "latency_margin", "allow_different", *_ON_THIS_MACHINE, *_OF_BOOTS),
        _SIDES_IN_GUESTS,
    )
    MACHINE_BOOTS = (
        "kernels that a machine boots in turn",
        ("slices", "dry_run", "count_margin", "pause", "binary", *_OF_QEMU),
        (*OF_FRESH, "kernel", "modules"),
    )
    SIMULATED = "simulated guests", (), ("mount", "mkfs", *OF_GUEST)
    REFERENCE = "a run of the good commit and a command", _MEASURED, ()

    def __init__(self, title: str, unsupported: tuple[str, ...], parts: tuple[str, ...]) -> None:
        self.title = title
        self.unsupported = unsupported
        self.parts = parts

    def refuse_others(self, *sides: Variant) -> None:
        """FscaleError if a side has an unsupported part, or only one side names a kernel."""
        for side in sides:
            side.refuse_but(self.parts, self.title)
        lacking = [side for side in sides if not side.of_guest]
        if any(side.kernel for side in sides) or self is PairedMethod.SIMULATED:
            lacking = [side for side in sides if not side.kernel]
        if lacking and len(lacking) < len(sides):
            raise FscaleError(
                f"{lacking[0].text} names no kernel, but the other side is measured in a guest; "
                f"give each side a kernel, such as {lacking[0].name}:kernel=6.12"
            )


def method_of(*, in_guests: bool, slices: bool | None, on: str | None = None) -> PairedMethod:
    """The way to measure sides that are judged against each other; `on`: where."""
    if in_guests and on is not None and name_of(on) in BOOTING:
        return PairedMethod.MACHINE_BOOTS
    if in_guests:
        return PairedMethod.GUEST_SLICES if slices else PairedMethod.BOOTS
    return PairedMethod.SLICES if slices else PairedMethod.CELLS
