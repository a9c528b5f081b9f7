# SPDX-License-Identifier: GPL-2.0-only
"""Runs one cell: a load in a fresh file system on chosen CPUs, and accounts for CPU time."""
