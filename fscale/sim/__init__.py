# SPDX-License-Identifier: GPL-2.0-only
"""The manycore simulator: stock kernels in QEMU with a plugin that simulates cache coherence."""
