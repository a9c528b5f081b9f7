# SPDX-License-Identifier: GPL-2.0-only
"""A kernel that another machine is to boot, and whether it is the one that runs there."""

from dataclasses import dataclass
from pathlib import Path

from fscale.model.errors import Exit, FscaleError
from fscale.model.results import Machine


class Broken(FscaleError):  # noqa: N818 - it says what happened
    """A kernel under test did not come up, or did not stay up; the machine can be used again."""

    code = Exit.FAILED


class OtherKernel(Broken):
    """The machine came up with another kernel than the wanted one."""


@dataclass(frozen=True)
class Bootable:
    """A kernel: its files here, or its name there."""

    release: str
    image: Path | None = None
    """the bzImage; None: it is installed there"""
    modules: Path | None = None
    """a tar archive with a directory RELEASE"""
    build_id: str | None = None
    """None: not known"""

    def check(self, machine: Machine) -> None:
        """Check that a machine runs this kernel.

        Raises:
            OtherKernel: it runs another one, or another build of it.
        """
        if machine.kernel != self.release:
            raise OtherKernel(
                f"{machine.hostname} should have booted {self.release}, but runs {machine.kernel}; "
                "the kernel may have panicked while it booted"
            )
        if "oops=panic" not in machine.kernel_cmdline.split():
            raise OtherKernel(
                f"{machine.hostname} runs {self.release} as it boots by itself; the kernel may "
                "have panicked while it booted"
            )
        build = machine.build.id if machine.build else None
        if self.build_id and build and build != self.build_id:
            raise OtherKernel(
                f"{machine.hostname} runs another build of {self.release}: its build id is {build} "
                f"instead of {self.build_id}"
            )
