# SPDX-License-Identifier: GPL-2.0-only
"""Private mounts, also where "/" is no mount point: in a chroot."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fscale.apps.namespace import private_mounts, private_tree

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount namespace"),
]


def run(*argv: str | Path) -> None:
    subprocess.run(argv, check=True)


@pytest.fixture
def jail(tmp_path: Path) -> Iterator[Path]:
    """A directory to chroot into, on a file system whose mounts every other namespace sees."""
    shared = tmp_path / "shared"
    shared.mkdir()
    run("mount", "-t", "tmpfs", "none", shared)
    run("mount", "--make-shared", shared)
    (shared / "jail" / "tmp").mkdir(parents=True)
    (shared / "jail" / "work").mkdir()
    yield shared / "jail"
    run("umount", "--recursive", shared)


def mounts(below: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if line.split()[4].startswith(f"{below}/")]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def child(work: Callable[[], object]) -> object:
    """What `work` returns in a process of its own."""
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            text = json.dumps(work())
        except BaseException as error:
            text = json.dumps(str(error))
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as output:
        said = output.read()
    os.wait()
    return json.loads(said)


def test_in_a_chroot_nothing_is_seen_outside(jail: Path) -> None:
    def work() -> object:
        os.chroot(jail)
        os.chdir("/work")
        tree, (directory,) = private_tree([Path("/work")], [])
        (directory / "file").touch()
        return [str(tree), str(Path.cwd()), names(Path("/")), names(Path())]

    assert child(work) == ["/tmp", "/work", ["tmp", "work"], ["file"]]
    assert (names(jail / "work"), names(jail / "tmp")) == (["file"], [])
    assert mounts(jail) == []


def test_a_shared_mount_is_private_from_then_on(jail: Path) -> None:
    def work() -> None:
        private_mounts()
        run("mount", "-t", "tmpfs", "none", jail / "work")

    assert child(work) is None
    assert mounts(jail) == []


def test_without_its_own_namespace_a_mount_would_be_seen(jail: Path) -> None:
    """The test above can fail."""
    run("unshare", "--mount", "--propagation", "unchanged", "mount", "-t", "tmpfs", "none", jail)
    (line,) = mounts(jail.parent)
    assert line.split()[4] == str(jail)
