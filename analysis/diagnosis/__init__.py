# SPDX-License-Identifier: GPL-2.0-only
"""Diagnosis: finds in raw profiles the kernel object that limits a cell, by its source name."""
