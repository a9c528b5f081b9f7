# SPDX-License-Identifier: GPL-2.0-only
"""The image of a simulated guest is found in the cache by every process."""

import os
import subprocess
import sys

from fscale.model.paths import ROOT

LIST = (
    "import sys; from pathlib import Path; from fscale.sim import image; "
    "from fscale.vm.module_build import Parts; "
    "print(list(image._files([], Parts(files={'bin/x': Path(sys.argv[1])}))))"
)


def test_the_order_of_its_files_does_not_depend_on_the_process() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", LIST, "/bin/mount"],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(said) == 1
    assert said.pop().count(".so") > 3
