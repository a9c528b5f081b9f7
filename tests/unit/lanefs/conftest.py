# SPDX-License-Identifier: GPL-2.0-only
"""An image that is whole, and copies of it to be damaged."""

import tempfile
from pathlib import Path

import pytest

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_fsck import SIZE


@pytest.fixture(scope="module")
def directory():
    """Where the images are: in memory if that can be, as fsck waits for the device."""
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def template(directory):
    """A populated image, and the inode numbers by name."""
    image = lanefs.make(directory / "template", SIZE, "-d", 3, "-i", 600)
    named = lanefs.populate(image)
    image.save()
    return image, named


@pytest.fixture
def copy(template, directory):
    """A copy to be damaged, which has no file yet: none is left of the test before."""
    path = directory / "image"
    path.unlink(missing_ok=True)
    return template[0].copy(path), template[1]
