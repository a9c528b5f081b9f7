# SPDX-License-Identifier: GPL-2.0-only
"""Commands of the user that reset a machine or print its console."""

import time

import pytest

from fscale.farm import controls
from fscale.farm.controls import Console, reset
from fscale.model.errors import FscaleError


def test_a_reset_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "RESET_SECONDS", 0.2)
    with pytest.raises(FscaleError, match="did not end within 0 s"):
        reset("sleep 600 & wait")
    reset("true")


def test_a_console_is_bounded_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "CONSOLE_BYTES", 64)
    endless = Console("yes '\x1b[2J\x07console\r'")
    time.sleep(1)
    text = endless.end()
    assert len(text) <= 64
    assert set(text.split()) <= {"?console", text.split()[0]}


def test_a_console_that_somebody_keeps_open_ends() -> None:
    """As a master connection of ssh does."""
    console = Console("echo line; setsid sleep 9 & exec cat")
    time.sleep(1)
    began = time.monotonic()
    assert console.end() == "line"
    assert time.monotonic() - began < 9
