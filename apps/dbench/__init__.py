# SPDX-License-Identifier: GPL-2.0-only
"""DBENCH, the load of a file server."""
