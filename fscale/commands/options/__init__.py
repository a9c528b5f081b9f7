# SPDX-License-Identifier: GPL-2.0-only
"""Options that several commands share: single ones, and bundles (bundle.py)."""
