# SPDX-License-Identifier: GPL-2.0-only
"""Where a cell's file system lies: media and devices, their checks, mkfs, mount and geometry."""
