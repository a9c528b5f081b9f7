# SPDX-License-Identifier: GPL-2.0-only
"""Commands and processes of this machine, for all who start or end some."""
