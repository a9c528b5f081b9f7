# SPDX-License-Identifier: GPL-2.0-only
"""`python -m fscale`."""

from fscale.cli import main

if __name__ == "__main__":
    main()
