# SPDX-License-Identifier: GPL-2.0-only
"""QEMU guests: the suite inside any kernel, modules under test, crash testing."""
