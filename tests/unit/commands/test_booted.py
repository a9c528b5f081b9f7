# SPDX-License-Identifier: GPL-2.0-only
"""A machine that boots kernels is lost before or after the last boot."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from fscale.ab import guest_run, machine_plan
from fscale.analysis.compare.settings import Settings
from fscale.commands.options import booted
from fscale.farm.controls import Controls
from fscale.model.errors import FscaleError
from fscale.model.variant import parse


@dataclass
class Seeded:
    """The one part of a request that is set here."""

    seed: int | None = None


@pytest.mark.parametrize("measured", [True, False])
def test_who_loses_the_machine_after_the_last_boot_is_led_to_the_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, measured: bool
) -> None:
    @contextlib.contextmanager
    def booting(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(use=lambda controls: None)
        raise FscaleError("box did not come back")

    def execute(*_: object) -> None:
        if not measured:
            raise FscaleError("box did not come back")

    monkeypatch.setattr(booted, "booting", booting)
    monkeypatch.setattr(machine_plan, "make", lambda *_, **__: SimpleNamespace(output=tmp_path))
    monkeypatch.setattr("fscale.ab.machine_boots.MachineBoots", lambda *_: None)
    monkeypatch.setattr(guest_run, "execute", execute)
    options = SimpleNamespace(
        recording=lambda _: SimpleNamespace(request=lambda *_: Seeded()),
        suite="smoke",
        arguments=(),
        wait=0,
    )
    side = parse("ext4:kernel=6.12")
    with pytest.raises(FscaleError, match="box did not come back") as caught:
        booted.compare_boots(
            side, side, options, on="ssh:box", controls=Controls(), output=tmp_path, seed=None,
            settings=Settings(), repetitions=4, seconds=1,
        )  # fmt: skip
    assert (f"fscale compare {tmp_path}" in str(caught.value)) is measured
