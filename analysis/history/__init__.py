# SPDX-License-Identifier: GPL-2.0-only
"""The history of runs: a SQLite index that can be rebuilt from the result files at any time."""
