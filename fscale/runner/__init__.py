# SPDX-License-Identifier: GPL-2.0-only
"""Measures on this machine: from a request to a checked plan, and from its cells to results."""
