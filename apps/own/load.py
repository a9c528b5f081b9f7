# SPDX-License-Identifier: GPL-2.0-only
"""Makes applications of the TOML files of loads."""

from fscale.apps.base import App
from fscale.apps.own.command import CommandLoad
from fscale.apps.own.fio import Fio
from fscale.model import loadfile


def app(text: str) -> App:
    """A load by its name in `configs/loads`, or by the path of its TOML file.

    Raises:
        FscaleError: its files are not valid, or ask what a cell cannot honour.
    """
    load = loadfile.read(text)
    return Fio(load) if load.file.fio else CommandLoad(load)
