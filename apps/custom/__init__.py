# SPDX-License-Identifier: GPL-2.0-only
"""Loads of a user's own: a fio job file or a command, described by a TOML file."""
