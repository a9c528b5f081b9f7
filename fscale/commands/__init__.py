# SPDX-License-Identifier: GPL-2.0-only
"""One module per command; each has `register(app)`, and `fscale.cli` finds them by name."""
