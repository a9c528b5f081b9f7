# SPDX-License-Identifier: GPL-2.0-only
"""Compares two sets of repetitions: statistics, verdicts, and how they are worded."""
