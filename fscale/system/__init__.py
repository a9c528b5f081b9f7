# SPDX-License-Identifier: GPL-2.0-only
"""Access to this machine: commands, processes, cgroups, namespaces, kernel files."""
