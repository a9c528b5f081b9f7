# SPDX-License-Identifier: GPL-2.0-only
"""The part that applications share whose program a Debian package installs."""

from fscale.apps.base import App
from fscale.apps.process import command_output
from fscale.system.executor import which


class Packaged(App):
    """An application with one program."""

    program: str
    package: str

    def missing(self) -> str | None:
        """The package, unless its program is installed."""
        return None if which(self.program) else self.package

    def version(self) -> str:
        """The version as the program prints it."""
        return command_output(self.program, "--version")
