# SPDX-License-Identifier: GPL-2.0-only
"""Finds the applications: the packages here whose module `driver` lists `APPS`, and TOML files."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Sequence

from fscale import apps
from fscale.apps.base import App
from fscale.apps.own import load
from fscale.model import catalogue, paths
from fscale.model.errors import FscaleError


def applications(own: Sequence[str] = ()) -> list[App]:
    """All applications, in the order of their packages' names, then the loads of `configs/loads`.

    `own` are paths of further TOML files.

    Raises:
        FscaleError: a TOML file is not valid, or two loads have one name.
    """
    found: list[App] = []
    for name in sorted(m.name for m in pkgutil.iter_modules(apps.__path__) if m.ispkg):
        if importlib.util.find_spec(f"{apps.__name__}.{name}.driver"):
            found += importlib.import_module(f"{apps.__name__}.{name}.driver").APPS
    found += [load.app(name) for name in catalogue.names(paths.LOADS)]
    named = {app.descriptor.id for app in found}
    for path in own:
        made = load.app(path)
        if made.descriptor.id in named:
            raise FscaleError(
                f"{path}: there is already a load called {made.descriptor.id}; rename the file"
            )
        named.add(made.descriptor.id)
        found.append(made)
    return found
