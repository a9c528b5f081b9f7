# SPDX-License-Identifier: GPL-2.0-only
"""The output formats of a comparison."""
