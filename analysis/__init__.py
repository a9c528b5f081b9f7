# SPDX-License-Identifier: GPL-2.0-only
"""Reads stored results and explains them; it never touches the machine under test."""
