# SPDX-License-Identifier: GPL-2.0-only
"""Finds the applications: each package in this directory with a module `driver` lists `APPS`."""

import importlib
import importlib.util
import pkgutil

import apps
from apps.base import App


def applications() -> list[App]:
    """All applications, in the order of their packages' names."""
    found: list[App] = []
    for name in sorted(m.name for m in pkgutil.iter_modules(apps.__path__) if m.ispkg):
        if importlib.util.find_spec(f"apps.{name}.driver"):
            found += importlib.import_module(f"apps.{name}.driver").APPS
    return found
