# SPDX-License-Identifier: GPL-2.0-only
"""Filebench's varmail and fileserver and SpanFS's catd, reimplemented as a C program."""
