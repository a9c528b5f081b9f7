# SPDX-License-Identifier: GPL-2.0-only
"""DBENCH, a file server's load."""
