# SPDX-License-Identifier: GPL-2.0-only
"""The public interface: results as pandas DataFrames, curves on matplotlib axes, verdicts.

`fscale` has its names, and imports it when one is used.
"""

from fscale.api.runs import Runs, load
from fscale.api.verdicts import compare
from fscale.model.errors import FscaleError

__all__ = ["FscaleError", "Runs", "compare", "load"]
