# SPDX-License-Identifier: GPL-2.0-only
"""Runs the cells of a plan on other machines, by engines that clusters already have."""
