# SPDX-License-Identifier: GPL-2.0-only
"""Writes runs and comparisons in formats, most of other programs; one module each.

`run` and `comparison` list the formats of either.
"""
