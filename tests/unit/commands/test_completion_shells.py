# SPDX-License-Identifier: GPL-2.0-only
"""TAB in bash, zsh and fish at a terminal, with the scripts that the Debian package installs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from fscale.model import paths

SECONDS = 60  # of a machine that is busy

pytestmark = pytest.mark.slow

# How a shell is started without the user's settings, and told where the scripts are.
SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile"],
        ". {share}/bash-completion/completions/fscale",
    ),
    "zsh": (
        ["zsh", "-f"],
        "fpath=({share}/zsh/vendor-completions $fpath); autoload -Uz compinit; compinit -u -D",
    ),
    "fish": (
        ["fish", "--no-config"],
        "set fish_complete_path {share}/fish/vendor_completions.d",
    ),
}


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the package has in /usr/share."""
    made = tmp_path_factory.mktemp("share")
    argv = [paths.ROOT / "setup" / "completions.sh", made, sys.executable, paths.ROOT]
    subprocess.run(argv, check=True)
    return made


@pytest.fixture(params=SHELLS)
def shell(
    request: pytest.FixtureRequest, share: Path, tmp_path: Path
) -> Iterator["pexpect.spawn[str]"]:
    argv, told = SHELLS[request.param]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    environment = {
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "PATH": f"{paths.ROOT / 'bin'}:{os.environ['PATH']}",
        "TERM": "xterm",
    }
    child = pexpect.spawn(
        argv[0], argv[1:], env=environment, encoding="utf-8", timeout=SECONDS,
        dimensions=(40, 200), cwd=str(tmp_path),
    )  # fmt: skip
    child.sendline(told.format(share=share))
    child.sendline(
        "echo is-$((1+1))-ready" if request.param != "fish" else "echo is-(math 1+1)-ready"
    )
    child.expect("is-2-ready")
    yield child
    child.close(force=True)


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("fscale his", "fscale history"),
        ("fscale run smo", "fscale run smoke"),
        ("fscale run smoke --fs ext4,bt", "fscale run smoke --fs ext4,btrfs"),
        ("fscale run smoke --repe", "fscale run smoke --repetitions"),
    ],
)
def test_tab_completes_a_word(shell: "pexpect.spawn[str]", typed: str, completed: str) -> None:
    # Shells redraw parts of a line in their own ways; what they have then is echoed as a whole.
    shell.send(f"{typed}\t\x01echo \r")
    shell.expect(rf"[\r\n]{completed} *[\r\n]")
