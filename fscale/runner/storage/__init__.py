# SPDX-License-Identifier: GPL-2.0-only
"""The storage below a cell's file system: media, devices, checks, mkfs, mount, geometry."""
