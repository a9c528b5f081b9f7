# SPDX-License-Identifier: GPL-2.0-only
"""Function tests of a mounted file system: what POSIX and Linux promise, one function each."""

import pkgutil
from importlib import import_module

for _module in pkgutil.iter_modules(__path__):
    if _module.name != "__main__":
        import_module(f"{__name__}.{_module.name}")
