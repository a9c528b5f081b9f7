# SPDX-License-Identifier: GPL-2.0-only
"""What numbers of options and suites may be at most.

An option with a minimum and a maximum is neither infinite nor NaN, and none makes a plan that no
memory holds or a time that no clock counts.
"""

MOST_SECONDS = 1_000_000.0
"""as the microbenchmark has it"""
MOST_MINUTES = MOST_SECONDS / 60
MOST_REPETITIONS = 10_000
MOST_SEED = 2**63 - 1
MOST_MEMORY = 1 << 30
"""MiB"""
MOST_JOBS = 4096
MOST_COUNT = 1_000_000_000
"""of files, blocks and operations"""
