# SPDX-License-Identifier: GPL-2.0-only
"""Paired comparison: measures both sides interleaved on one machine, with early stopping."""
