# SPDX-License-Identifier: GPL-2.0-only
"""Diagnosis: from raw profiles to the object that limits a cell, in the words of its developers."""
