# SPDX-License-Identifier: GPL-2.0-only
"""fsck.lanefs -y that ends while it writes: block 0 tells of damage until all is mended."""

import resource
import signal
import subprocess

import pytest

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_fsck import CLEAN, REPAIRED, fsck
from tests.support.lanefs_image import BLOCK, BUILD, SUPER, Image

CLEANLY, MOUNTED, ERROR = 1, 2, 0x8000
FLAG = 1 << 31  # that no inode has


def repair_until(image, block):
    """fsck -y, killed by its first write of that block or one behind it; it writes in order."""
    lanefs.build("tools")
    size = block * BLOCK
    done = subprocess.run(
        [BUILD / "fsck.lanefs", "-y", image.path],
        check=False, capture_output=True, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )  # fmt: skip
    assert done.returncode == -signal.SIGXFSZ, done.stdout


def damage(image, named):
    """In the first domain and in the last."""
    for name in ("linked", "sparse"):
        image.poke_inode(named[name], "flags", FLAG)


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (CLEANLY, "linked"),
        (CLEANLY, "sparse"),
        (CLEANLY | ERROR, "sparse"),
        (MOUNTED, "sparse"),
        (MOUNTED | ERROR, "sparse"),
    ],
)
def test_the_mark_stays(copy, state, name):
    image, named = copy
    damage(image, named)
    image.poke(0, *SUPER["state"], state)
    image.save()
    repair_until(image, image.slot(named[name])[0])
    after = Image(image.path)
    assert after.super("state") == CLEANLY | ERROR
    assert after.peek_inode(named[name], "flags") == FLAG
    code, text = fsck(image, "-y")
    assert code == REPAIRED, text
    assert Image(image.path).super("state") == CLEANLY
    code, text = fsck(image, "-n")
    assert code == CLEAN, text
