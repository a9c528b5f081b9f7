# SPDX-License-Identifier: GPL-2.0-only
"""Pages for readers; `scripts/` makes and checks them."""
