# SPDX-License-Identifier: GPL-2.0-only
"""Pairs of calls that commute: which of them share cache lines although they need not."""
