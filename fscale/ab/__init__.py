# SPDX-License-Identifier: GPL-2.0-only
"""Paired comparison: both sides interleaved on one machine, until the data decide."""
