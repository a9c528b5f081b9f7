# SPDX-License-Identifier: GPL-2.0-only
"""All tests of lanefs at length, in slices of minutes, resumable."""
