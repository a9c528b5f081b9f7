# SPDX-License-Identifier: GPL-2.0-only
"""apps/exim/install.sh, with programs of the test's own instead of apt and dpkg."""

import os
import subprocess
from pathlib import Path

import pytest

from fscale.apps.namespace import private_mounts
from fscale.model import paths

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount namespace"),
]
SCRIPT = paths.PACKAGE / "apps/exim/install.sh"
# What the package's own script would be told when it starts its daemon.
APT = """
case "$*" in *update*) exit 0 ;; esac
echo "apt-get $*" >>"$LOG"
/usr/sbin/policy-rc.d exim4 start
echo "start is answered by $?" >>"$LOG"
touch /usr/sbin/exim4
exit ${APT_STATUS:-0}
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    directory = tmp_path / "bin"
    directory.mkdir()
    for name, body in (
        ("apt-get", APT),
        ("dpkg-query", 'printf "%s" "$INSTALLED"\n'),
        ("update-rc.d", 'echo "update-rc.d $*" >>"$LOG"\n'),
        ("systemctl", 'echo "systemctl $1" >>"$LOG"\n'),
    ):
        (directory / name).write_text(f"#!/bin/sh\n{body}")
        (directory / name).chmod(0o755)
    return directory


def install(
    programs: Path, before: str = "", installed: str = "", apt_status: int = 0
) -> tuple[int, str, str, str]:
    """Exit code, words, what was called, what is in /usr/sbin (before: what `before` makes)."""
    log, after = programs.parent / "log", programs.parent / "after"
    log.touch()
    inside = (
        f'mount -t tmpfs t /usr/sbin\n{before}\n"{SCRIPT}"\ns=$?\nls /usr/sbin >"{after}"\nexit $s'
    )
    done = subprocess.run(
        ["sh", "-c", inside],
        env={
            "PATH": f"{programs}:/usr/bin:/bin", "LOG": str(log), "INSTALLED": installed,
            "YES": "1",
            "APT_STATUS": str(apt_status),
        },
        preexec_fn=private_mounts, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr, log.read_text(), after.read_text()


def policy(status: int) -> str:
    file = "/usr/sbin/policy-rc.d"
    return f"printf '#!/bin/sh\\nexit {status}\\n' >{file}; chmod 755 {file}"


def test_the_daemon_may_not_start(programs: Path) -> None:
    code, _, called, after = install(programs)
    assert code == 0
    assert called.splitlines() == [
        "apt-get install -y -qq --no-install-recommends exim4-daemon-light",
        "start is answered by 101",
        "update-rc.d exim4 disable",
        "systemctl mask",
    ]
    assert after.split() == ["exim4"]  # and no policy-rc.d


def test_a_failed_installation_leaves_no_policy(programs: Path) -> None:
    code, _, _, after = install(programs, apt_status=100)
    assert code == 100
    assert after.split() == ["exim4"]


def test_what_is_there_stays(programs: Path) -> None:
    assert install(programs, before="touch /usr/sbin/exim4; chmod 755 /usr/sbin/exim4")[2] == ""


@pytest.mark.parametrize(
    ("before", "installed", "name"),
    [
        ("", "installed postfix default-mta, mail-transport-agent\n", "postfix"),
        ("touch /usr/sbin/sendmail", "", "/usr/sbin/sendmail"),
    ],
)
def test_another_mail_server_stays(programs: Path, before: str, installed: str, name: str) -> None:
    code, said, called, _ = install(programs, before, installed)
    assert (code, called) == (0, "")
    assert f"this machine has a mail server ({name})" in said


def test_a_removed_mail_server_is_none(programs: Path) -> None:
    installed = "config-files postfix default-mta, mail-transport-agent\n"
    assert "exim4-daemon-light" in install(programs, installed=installed)[2]


@pytest.mark.parametrize(("status", "goes_on"), [(101, True), (0, False)])
def test_a_policy_of_the_machine_stays(programs: Path, status: int, goes_on: bool) -> None:
    code, said, called, after = install(programs, before=policy(status))
    assert code == 0
    assert bool(called) == goes_on
    assert "policy-rc.d" in after
    assert ("would let its mail server start" in said) != goes_on
