# SPDX-License-Identifier: GPL-2.0-only
"""Upper bounds of the numbers in options and suites.

A bounded option is neither infinite nor NaN, and cannot ask for a plan that exceeds memory or for a
time that exceeds the clock's range.
"""

MOST_SECONDS = 1_000_000.0
"""the same bound as in the microbenchmark"""
MOST_MINUTES = MOST_SECONDS / 60
MOST_REPETITIONS = 10_000
MOST_SEED = 2**63 - 1
MOST_MEMORY = 1 << 30
"""MiB"""
MOST_JOBS = 4096
MOST_CORES = 1 << 16
"""eight times what Linux can be built for"""
MOST_WORKERS_PER_CPU = 256
"""the same bound as in the microbenchmark"""
MOST_COUNT = 1_000_000_000
"""files, blocks or operations"""
