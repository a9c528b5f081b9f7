# SPDX-License-Identifier: GPL-2.0-only
"""Starts the command line."""

import sys
import traceback


def main() -> None:
    """Run the command line and exit.

    Python's exit code for an exception that nothing handles is 1, which would be the verdict that a
    regression was found, and to `git bisect run` a bad commit.
    """
    try:
        from fscale import cli  # noqa: PLC0415 - an import may fail, as for lack of memory

        cli.main()
    except Exception:
        traceback.print_exc()
        sys.exit(128 if sys.argv[1:2] == ["bisect"] else 2)


if __name__ == "__main__":
    main()
