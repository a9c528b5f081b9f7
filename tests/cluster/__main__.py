# SPDX-License-Identifier: GPL-2.0-only
"""Makes a root with Slurm and fscale, starts a cluster of two nodes there, and tries fscale on it.

`python -m tests.cluster`, as root, some minutes. What is committed is tried. The root and all its
processes end with this command, however it ends. Exits with 1 where something fails, with 2 where
this machine cannot make such a root, with 3 after Ctrl-C.
"""

import argparse
import shlex
import subprocess
import sys

from fscale.model import paths
from tests.cluster.proofs import PROOFS, SCALE

_PACKAGES = "slurmctld slurmd slurm-client munge iproute2 procps"
_INSTALL = f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {_PACKAGES}"
_NAMESPACES = "--pid --net --mount --uts --fork --kill-child --mount-proc"
# The script removes the root when it is told to end, also by the end of this process. A cell that
# was killed with its namespaces may have left CPUs of this machine offline.
_GUARD = """
trap 'kill -TERM "$root" 2>/dev/null' TERM INT HUP
setup/fresh-root.sh "$@" &
root=$!
while kill -0 "$root" 2>/dev/null; do
    wait "$root"
    code=$?
done
bin/fscale restore --wait 300 >&2
exit "$code"
"""


def main() -> int:
    """Run the proofs in a root of their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    choices = [*PROOFS, *SCALE]
    parser.add_argument("--only", choices=choices, action="append", help="default: all proofs")
    only = parser.parse_args().only or list(PROOFS)
    lines = (
        f"export DEBIAN_FRONTEND=noninteractive; ({_INSTALL}) >/dev/null",
        "make .venv/.installed >/dev/null && make -j4 -C microbench >/dev/null",
        # Its processes end with it, also if what started it is killed.
        f"exec setpriv --pdeathsig KILL unshare {_NAMESPACES} .venv/bin/python -m "
        f"tests.cluster.inside {shlex.join(only)}",
    )
    told = ["setpriv", "--pdeathsig", "TERM", "bash", "-c", _GUARD, "cluster", *lines]
    process = subprocess.Popen(told, cwd=paths.ROOT)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # which the script has got as well, and cleans up
            continue


if __name__ == "__main__":
    sys.exit(main())
