# SPDX-License-Identifier: GPL-2.0-only
"""Options that several commands have in common, a file for each bundle (fscale/model/bundle.py)."""
