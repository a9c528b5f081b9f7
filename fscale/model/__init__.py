# SPDX-License-Identifier: GPL-2.0-only
"""The validated data models: what the TOML files say and what the result files hold."""
