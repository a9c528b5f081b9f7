# SPDX-License-Identifier: GPL-2.0-only
"""What a session records of a failure, and what it refuses before the first cell."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fscale.model import variant
from fscale.model.errors import FscaleError
from fscale.model.fault import Fault
from fscale.model.load import Outcome
from fscale.model.store import Store
from fscale.runner.machine import host
from fscale.runner.machine.changes import MountFailed
from fscale.runner.session import Session, copy_outcome, new_cell
from fscale.system.executor import CommandFailed
from tests.support.synthetic import key


@pytest.fixture
def session(tmp_path: Path) -> Session:
    made = object.__new__(Session)
    made.__dict__.update(
        do=SimpleNamespace(log=[], dry=False),
        store=Store(tmp_path),
        state=Path("/run/fscale"),
        setup=SimpleNamespace(
            media={"dir": SimpleNamespace(kind="dir", path="/home/x")}, missing={}
        ),
    )
    return made


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (host.HotplugRefused("the kernel refuses to take CPU 1 offline"), "machine"),
        (OSError(errno.ENOSPC, "No space left on device", "results/.scratch-x"), "machine"),
        (OSError(errno.EROFS, "Read-only file system", "results/cells/x"), "machine"),
        (OSError(errno.EIO, "Input/output error", "/run/fscale/mnt/work"), "filesystem"),
        (OSError(errno.ENOSPC, "No space left on device", "/home/x/cell/a"), "user"),
        (CommandFailed("losetup is not installed"), "machine"),
        (CommandFailed("mkfs failed", fault="filesystem"), "filesystem"),
    ],
)
def test_a_failure_is_recorded_with_its_fault(
    session: Session, error: FscaleError | OSError, fault: str
) -> None:
    cell = new_cell(key(1))
    with session.recorded([cell]):
        raise error
    (kept,) = session.store.cells()
    assert (cell.status, cell.fault, kept.fault) == ("error", fault, fault)


def test_the_first_fault_stays(session: Session) -> None:
    cell = new_cell(key(1))
    with session.recorded([cell]):
        copy_outcome(cell, Outcome("error", "EIO", "filesystem"))
        raise CommandFailed("no umount")
    assert cell.fault == "filesystem"
    copy_outcome(cell, Outcome("ok"))
    assert cell.fault is None


@pytest.mark.parametrize(
    ("name", "fault", "refused"),
    [
        ("ext4:mount=nonsense", "filesystem", True),
        ("ext4:mkfs=-O nonsense", "filesystem", True),
        ("ext4:mount=nonsense", "machine", False),
        ("ext4", "filesystem", False),
    ],
)
def test_options_that_the_kernel_refuses_are_found_before_the_first_cell(
    session: Session, monkeypatch: pytest.MonkeyPatch, name: str, fault: Fault, refused: bool
) -> None:
    tried = []

    @contextlib.contextmanager
    def placed(cell: object) -> Iterator[None]:
        tried.append(cell)
        raise MountFailed("wrong fs type, bad option", fault=fault)
        yield

    monkeypatch.setattr(session, "placed", placed)
    session.setup.variants = {"ext4": variant.parse("ext4"), name: variant.parse(name)}
    asked = [key(number, filesystem=name) for number in (1, 2, 3)]
    if refused:
        with pytest.raises(FscaleError, match="correct or leave out its options") as raised:
            session.refuse_without_effect(asked)
        assert raised.value.code == 2
    else:
        session.refuse_without_effect(asked)
    assert len(tried) == (0 if name == "ext4" else 1)
