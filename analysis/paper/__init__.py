# SPDX-License-Identifier: GPL-2.0-only
"""FxMark's paper beside our curves: what it says, as data, and how ours compare."""
