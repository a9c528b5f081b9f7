# SPDX-License-Identifier: GPL-2.0-only
"""RocksDB's db_bench."""
