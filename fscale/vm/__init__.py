# SPDX-License-Identifier: GPL-2.0-only
"""QEMU guests: runs the suite with any kernel, tests modules, and tests crash consistency."""
