# SPDX-License-Identifier: GPL-2.0-only
"""The validated data models of the TOML files and of the result files."""
