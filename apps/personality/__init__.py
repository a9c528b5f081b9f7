# SPDX-License-Identifier: GPL-2.0-only
"""Filebench's varmail and fileserver and SpanFS's catd, as a C program of ours."""
