# SPDX-License-Identifier: GPL-2.0-only
"""A cluster of two nodes on this machine, in a minimal root: fscale's cells as jobs of Slurm."""
