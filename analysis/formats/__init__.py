# SPDX-License-Identifier: GPL-2.0-only
"""Converts runs and comparisons to and from formats, most of other programs; one module each.

`run` and `comparison` list the formats of either. `fxmark` reads; all others write.
"""
