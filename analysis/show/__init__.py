# SPDX-License-Identifier: GPL-2.0-only
"""Shows a run in a terminal: its curves and the scalability matrix."""
