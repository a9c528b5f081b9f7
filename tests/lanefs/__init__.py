# SPDX-License-Identifier: GPL-2.0-only
"""Tests of a file system under development, in a guest: `python -m tests.lanefs --help`."""
