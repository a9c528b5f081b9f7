# SPDX-License-Identifier: GPL-2.0-only
"""Manycore scalability of Linux file systems: measures it, explains it, compares it.

The public interface is `load`, `compare`, `Runs` and `FscaleError` (docs/guide/notebooks.md):

    run = fscale.load("results/today")
    run.points, run.curve("MWCM")
    fscale.compare("results/v6.17", "results/v6.18")

It is imported when it is first used, because it needs pandas and matplotlib.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fscale.api import FscaleError, Runs, compare, load
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'fscale' has no attribute {name!r}")
        from fscale import api  # noqa: PLC0415 - imports pandas and matplotlib

        return getattr(api, name)

    def __dir__() -> list[str]:
        return [*globals(), *__all__]


__all__ = ["FscaleError", "Runs", "compare", "load"]
__version__ = "0.2.0"
