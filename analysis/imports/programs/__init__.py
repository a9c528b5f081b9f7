# SPDX-License-Identifier: GPL-2.0-only
"""One module per program, named after it; `analysis/imports/registry.py` finds them.

Each has `ABOUT` (a sentence for the command line), `EXAMPLE` (the files of an example), and
`read(files) -> Reading`, which raises FscaleError if a file is not one of the program.
"""
