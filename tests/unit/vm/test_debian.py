# SPDX-License-Identifier: GPL-2.0-only
"""Debian packages for guests, with an apt-get that is made up."""

import threading
from pathlib import Path

import pytest
from rich.console import Console

from fscale.vm import debian, rootfs
from fscale.vm.debian import Apt
from fscale.vm.steps import Steps
from tests.support.files import write_program

# As apt-get does, it fails where another one is at work.
APT_GET = """#!/bin/sh
mkdir "{place}/at-work" || exit 100
sleep 0.3
echo updated >>"{place}/done"
rmdir "{place}/at-work"
"""


# Settings of a user behind a proxy, and one that is not of how archives are reached.
APT_CONFIG = r"""#!/bin/sh
echo 'Acquire "";'
echo 'Acquire::http::Proxy "http://proxy:3128";'
echo 'Acquire::Check-Valid-Until "false";'
echo 'APT::Install-Recommends "1";'
"""


def test_two_that_want_the_lists_fetch_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(tmp_path / "apt-get", APT_GET.format(place=tmp_path))
    write_program(tmp_path / "apt-config", "#!/bin/sh\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(debian, "need", lambda tool, _package: str(tmp_path / tool))
    failed: list[Exception] = []

    def update() -> None:
        try:
            Apt("bookworm", Steps(Console(stderr=True)))._update()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=update) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert (tmp_path / "done").read_text() == "updated\n"


# Of `apt-cache show`, two packages as Debian 13 has them and one as Debian 14 does.
APT_CACHE = r"""#!/bin/sh
for package; do :; done
case $package in
linux-image-amd64)
	echo "Depends: linux-base-amd64 (= 7.2-1), linux-image-7.2+deb14-amd64 (= 7.2-1)" ;;
linux-image-7.2+deb14-amd64)
	echo "Pre-Depends: linux-base (>= 4)"
	echo "Depends: kmod, linux-base-7.2+deb14-amd64 (= 7.2-1)," \
		"linux-binary-7.2+deb14-amd64 (= 7.2-1), linux-modules-7.2+deb14-amd64 (= 7.2-1)" ;;
linux-image-6.12-amd64) echo "Depends: kmod, linux-base (>= 4.3~), initramfs-tools (>= 0.120)" ;;
esac
"""


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    write_program(tmp_path / "apt-get", APT_GET.format(place=tmp_path))
    write_program(tmp_path / "apt-cache", APT_CACHE)
    write_program(tmp_path / "apt-config", APT_CONFIG)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(debian, "need", lambda tool, _package: str(tmp_path / tool))
    return Apt("sid", Steps(Console(stderr=True)))


def test_the_newest_kernel_is_found_among_what_its_package_needs(apt: Apt) -> None:
    assert apt.latest_kernel() == "linux-image-7.2+deb14-amd64"


def test_a_kernel_in_several_packages_is_all_of_them(apt: Apt) -> None:
    assert apt.kernel_parts("linux-image-7.2+deb14-amd64") == [
        "linux-base-7.2+deb14-amd64",
        "linux-binary-7.2+deb14-amd64",
        "linux-modules-7.2+deb14-amd64",
    ]
    assert apt.kernel_parts("linux-image-6.12-amd64") == ["linux-image-6.12-amd64"]


def test_archives_are_reached_as_this_machines_apt_reaches_them(apt: Apt) -> None:
    said = ["Acquire::http::Proxy=http://proxy:3128", "Acquire::Check-Valid-Until=false"]
    assert {f"-o{setting}" for setting in said} <= set(apt._options())
    assert not [option for option in apt._options() if "Install-Recommends" in option]


def test_a_tree_is_made_as_this_machines_apt_reaches_archives(
    tmp_path: Path, apt: Apt, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = write_program(
        tmp_path / "mmdebstrap", f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/asked\n'
    )
    monkeypatch.setattr(rootfs, "need", lambda _tool, _package: str(tool))
    monkeypatch.setattr(debian, "KEYRING", tool)
    rootfs.bootstrap("sid", "minbase", ["make"], tmp_path / "tree", Steps(Console(stderr=True)))
    assert '--aptopt=Acquire::http::Proxy "http://proxy:3128"' in (
        (tmp_path / "asked").read_text().splitlines()
    )


def test_only_a_released_suite_has_updates() -> None:
    assert "trixie-updates" in debian.sources("trixie")
    assert debian.sources("sid").splitlines() == [
        f"deb [signed-by={debian.KEYRING}] {debian.MIRROR} sid main"
    ]
