# SPDX-License-Identifier: GPL-2.0-only
"""Compares two kernels or modules in guests that boot in turn."""

import sys

from fscale.ab.boots import Boots
from fscale.ab.guests import Guests, boot_directory, complete
from fscale.model.errors import FscaleError
from fscale.vm import guest as guests
from fscale.vm.guest import GuestError
from fscale.vm.tasks import GuestJob


class GuestBoots(Guests, Boots):
    """See fscale.ab.loop.Source."""

    def first_round(self) -> list[GuestJob]:
        """See Guests."""
        return [self._planned(name, repetition) for name, repetition in self._turns(1)]

    def _planned(self, name: str, repetition: int) -> GuestJob:
        side = self.plan.sides[name]
        directory = boot_directory(self.plan.output, name, repetition)
        return GuestJob(side.guest, side.parts.added(self.plan.job(side, directory, repetition)))

    def boot(self, name: str, repetition: int) -> None:
        """See Boots."""
        boot, side = self._planned(name, repetition), self.plan.sides[name]
        if complete(boot.output):
            return
        self.steps.note(f"boot {repetition} of side {name}: {side.variant.text}")
        # Standard output is reserved for the comparison, which may be JSON.
        outcome = guests.run(
            boot.guest, self.plan.emulator, boot.job, self.steps, output=sys.stderr.buffer
        )
        if outcome.end != "finished":
            raise GuestError(outcome)
        if not complete(boot.output):
            raise FscaleError(
                f"`fscale run` failed in the guest of {side.variant.text}; see its output above"
            )
