# SPDX-License-Identifier: GPL-2.0-only
"""Finds the applications: the packages here whose module `driver` lists `APPS`, and TOML files."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Sequence

from fscale import apps
from fscale.apps.base import App
from fscale.apps.custom.command import CommandLoad
from fscale.apps.custom.fio import Fio
from fscale.model import catalogue, loadfile, paths
from fscale.model.errors import FscaleError


def custom_load(text: str) -> App:
    """A load by its name in `configs/loads`, or by the path of its TOML file.

    Raises:
        FscaleError: its files are not valid, or ask what a cell cannot honour.
    """
    load = loadfile.read(text)
    return Fio(load) if load.file.fio else CommandLoad(load)


def applications(files: Sequence[str] = ()) -> list[App]:
    """All applications, in the order of their packages' names, then the loads of `configs/loads`.

    `files` are paths of further TOML files.

    Raises:
        FscaleError: a TOML file is not valid, or two loads have one name.
    """
    every: list[App] = []
    for name in sorted(m.name for m in pkgutil.iter_modules(apps.__path__) if m.ispkg):
        if importlib.util.find_spec(f"{apps.__name__}.{name}.driver"):
            every += importlib.import_module(f"{apps.__name__}.{name}.driver").APPS
    every += [custom_load(name) for name in catalogue.names(paths.LOADS)]
    named = {app.descriptor.id for app in every}
    for path in files:
        made = custom_load(path)
        if made.descriptor.id in named:
            raise FscaleError(
                f"{path}: there is already a load called {made.descriptor.id}; rename the file"
            )
        named.add(made.descriptor.id)
        every.append(made)
    return every
