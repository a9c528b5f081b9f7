# SPDX-License-Identifier: GPL-2.0-only
"""FxMark's paper compared with the curves of a run: its statements as data, and the verdicts."""
