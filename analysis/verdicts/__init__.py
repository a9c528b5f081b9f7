# SPDX-License-Identifier: GPL-2.0-only
"""The forms in which a comparison is written."""
