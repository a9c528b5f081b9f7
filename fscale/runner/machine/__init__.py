# SPDX-License-Identifier: GPL-2.0-only
"""Changes to the machine: each is recorded in a journal before it is made, and can be undone."""
