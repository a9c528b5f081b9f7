# SPDX-License-Identifier: GPL-2.0-only
"""fio with job files of ours."""
