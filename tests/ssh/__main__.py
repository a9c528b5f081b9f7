# SPDX-License-Identifier: GPL-2.0-only
"""Tries `--on ssh:testbox` with a machine in QEMU: python -m tests.ssh [PROOF...].

Prints what the commands print, how long they take and how many boots they measured. After each
proof the machine must run its own kernel, with nothing left there. Under emulation a boot takes
minutes.
"""

import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.ssh.box import Box
from tests.ssh.machine import running, steps
from tests.ssh.proofs import PROOFS

PORT = int(os.environ.get("FSCALE_SSH_PORT", "22722"))
"""on loopback; each of two machines at once needs its own, as it needs a directory"""


def main() -> int:
    """Run the proofs that are named, by default all; 1 if one fails."""
    asked = sys.argv[1:] or list(PROOFS)
    # A shell lets what it runs in the background ignore it, and so would what is interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = []
    with tempfile.TemporaryDirectory(prefix="fscale-ssh-test-") as named:
        place = Path(os.environ.get("FSCALE_SSH_TEST", named))
        with running(steps(), place, PORT) as config:
            box = Box(place, config)
            for name in asked:
                print(f"== {name}: {PROOFS[name].__doc__}", flush=True)
                began = time.monotonic()
                try:
                    PROOFS[name](box)
                    box.check_left_alone()
                except AssertionError:
                    traceback.print_exc()
                    failed.append(name)
                print(f"== {name}: {time.monotonic() - began:.0f} s", flush=True)
    print(f"failed: {', '.join(failed)}" if failed else "all as it should be")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
