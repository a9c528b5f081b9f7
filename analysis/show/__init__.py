# SPDX-License-Identifier: GPL-2.0-only
"""A run in a terminal: its curves and the matrix of what scales."""
