# SPDX-License-Identifier: GPL-2.0-only
"""The tables of runs: what a row is, and each column's type, unit and meaning."""
