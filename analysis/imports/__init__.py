# SPDX-License-Identifier: GPL-2.0-only
"""Makes runs of what other programs measured.

`programs` has a module per program, which reads its files into cells; `run` makes one run of them.
"""
