# SPDX-License-Identifier: GPL-2.0-only
"""Application benchmarks: each drives one program on the file system under test."""
