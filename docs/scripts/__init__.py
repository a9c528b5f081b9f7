# SPDX-License-Identifier: GPL-2.0-only
"""Makes and checks the pages of docs/."""
