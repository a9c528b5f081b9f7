# SPDX-License-Identifier: GPL-2.0-only
"""fio with the job files in this directory."""
