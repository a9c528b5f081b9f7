# SPDX-License-Identifier: GPL-2.0-only
"""Changes to the machine: each is journaled before it is made, and can be undone."""
