# SPDX-License-Identifier: GPL-2.0-only
"""Predicts the throughput of many cores from a measurement of few and a simulation of many."""
