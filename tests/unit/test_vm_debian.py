# SPDX-License-Identifier: GPL-2.0-only
"""Debian packages for guests, with an apt-get that is made up."""

import threading
from pathlib import Path

import pytest
from rich.console import Console

from vm import debian
from vm.debian import Apt
from vm.steps import Steps

# As apt-get does, it fails where another one is at work.
APT_GET = """#!/bin/sh
mkdir "{place}/at-work" || exit 100
sleep 0.3
echo updated >>"{place}/done"
rmdir "{place}/at-work"
"""


def test_two_that_want_the_lists_fetch_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "apt-get"
    tool.write_text(APT_GET.format(place=tmp_path))
    tool.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(debian, "need", lambda _tool, _package: str(tool))
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
