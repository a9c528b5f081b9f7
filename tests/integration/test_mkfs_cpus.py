# SPDX-License-Identifier: GPL-2.0-only
"""A mkfs that is said to look at no CPUs makes the same file system at any number of them."""

import subprocess
from pathlib import Path

import pytest

from fscale.apps.namespace import private_mounts
from fscale.model import paths
from fscale.model.catalogue import load_filesystem
from fscale.model.config import FileSystem
from fscale.system.executor import which

pytestmark = pytest.mark.root

# In a mount namespace of its own, where another file says which CPUs are online.
PRETEND = 'mount --bind "$0" /sys/devices/system/cpu/online && exec "$@"'


def seen(tmp_path: Path, online: str, argv: list[str]) -> str:
    """What a command prints on a machine with these CPUs."""
    said = tmp_path / "online"
    said.write_text(online)
    argv = ["/bin/sh", "-c", PRETEND, str(said), *argv]
    done = subprocess.run(
        argv, check=True, capture_output=True, text=True, preexec_fn=private_mounts
    )
    return done.stdout


def geometry(tmp_path: Path, fs: FileSystem, online: str) -> list[str]:
    """What mkfs says about a file system of 2 GiB, but for its UUID."""
    image = tmp_path / "image"
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(2 << 30)
    argv = [word.replace("{device}", str(image)) for word in fs.mkfs if word != "-q"]
    return [line for line in seen(tmp_path, online, argv).splitlines() if "UUID" not in line]


@pytest.mark.parametrize("name", sorted(p.stem for p in paths.FILESYSTEMS.glob("*.toml")))
def test_the_geometry_is_the_same_on_1_and_on_256_cpus(tmp_path: Path, name: str) -> None:
    fs = load_filesystem(name)
    if fs.sized_by_cpus or fs.nodev:
        pytest.skip("all CPUs are online while it is made, or it is not made")
    if which(fs.mkfs[0]) is None:
        pytest.skip(f"{fs.mkfs[0]} is not installed")
    nproc = ["getconf", "_NPROCESSORS_ONLN"]
    assert [int(seen(tmp_path, online, nproc)) for online in ("0", "0-255")] == [1, 256]
    one = geometry(tmp_path, fs, "0")
    assert len(one) > 3
    assert geometry(tmp_path, fs, "0-255") == one
