# SPDX-License-Identifier: GPL-2.0-only
"""The engine for labgrid's places, with a program in place of its client.

What it prints is what labgrid-client 26.0.1 printed beside its coordinator and exporter.
"""

import os
from pathlib import Path

import pytest

from fscale.farm.controls import Controls
from fscale.farm.engine import open_engine
from fscale.farm.labgrid import describe
from fscale.farm.objects import Objects
from fscale.farm.remote import Remote
from fscale.model.errors import FscaleError, MissingTool
from fscale.system import executor
from tests.support.farm import keys, task
from tests.support.ssh_machine import Machine

SHOWN = """Place 'box1':
  matches:
    lab/box/*
  acquired: vm/root
  acquired resources:
    lab/box/NetworkPowerPort/NetworkPowerPort
    lab/box/NetworkService/NetworkService
  created: 2026-11-29 20:29:45.305570
  changed: 2026-11-29 20:30:19.426173
Acquired resource 'NetworkPowerPort' (lab/box/NetworkPowerPort/NetworkPowerPort):
  {'acquired': 'box1',
   'avail': True,
   'cls': 'NetworkPowerPort',
   'params': {'extra': {'proxy': 'localhost', 'proxy_required': False},
              'host': 'http://127.0.0.1:1/',
              'index': 0,
              'model': 'simplerest'}}
Acquired resource 'NetworkService' (lab/box/NetworkService/NetworkService):
  {'acquired': 'box1',
   'avail': True,
   'cls': 'NetworkService',
   'params': {'address': 'testbox',
              'extra': {'proxy': 'localhost', 'proxy_required': False},
              'username': 'root'}}
"""
SERIAL = """Acquired resource 'NetworkSerialPort' (lab/box/NetworkSerialPort/NetworkSerialPort):
  {'acquired': 'box1', 'cls': 'NetworkSerialPort', 'params': {'host': 'lab', 'port': 4000}}
"""
ADDRESS = "'address': 'testbox'"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the machine that the place names, and of the client's log."""
    machine = Machine(tmp_path / "machine")
    machine.use(monkeypatch)
    machine.tell("fake")
    machine.tell("shown", SHOWN)
    program = machine.place / "here/labgrid-client"
    program.write_text(
        '#!/bin/sh\ncd "$SSH_STUB"; echo "$*" >>asked\n'
        "[ $3 != show ] || cat shown\n"
        "[ $3 != acquire ] || [ ! -e held ] || { cat held >&2; exit 1; }\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(executor, "TOOL_PATH", os.environ["PATH"])
    return machine.place


def measure(on: str, said: list[str]) -> bool:
    with open_engine(on, said.append) as engine:
        engine.submit([task(*keys(1))], Objects())
        return all(answer.complete for answer in engine.collect())


def asked(client: Path) -> list[str]:
    return [line.split()[-1] for line in (client / "asked").read_text().splitlines()]


def test_a_place_is_held_while_its_machine_measures(client: Path) -> None:
    said: list[str] = []
    assert measure("labgrid:box1", said)
    assert asked(client) == ["acquire", "show", "release"]
    assert not said


def test_a_place_that_was_held_before_stays_so(client: Path) -> None:
    (client / "held").write_text("labgrid-client: Error: You have already acquired place box1.\n")
    said: list[str] = []
    assert measure("labgrid:box1", said)
    assert asked(client) == ["acquire", "show"]
    assert said == ["labgrid's place box1 was acquired before, and stays so"]


def test_a_place_of_another_user_is_refused(client: Path) -> None:
    (client / "held").write_text("labgrid-client: Error: Place box1 is already acquired by vm/x.\n")
    with pytest.raises(FscaleError, match="already acquired by vm/x"):
        measure("labgrid:box1", [])
    assert asked(client) == ["acquire"]


def test_a_place_is_released_though_its_machine_refuses(client: Path) -> None:
    (client / "refused").write_text("Host key verification failed.")
    with pytest.raises(FscaleError, match="Host key verification failed"):
        measure("labgrid:box1", [])
    assert asked(client) == ["acquire", "show", "release"]


@pytest.mark.parametrize("given", [None, "mine"])
def test_its_power_and_its_console_are_used_unless_others_are_given(
    client: Path, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    (client / "shown").write_text(SHOWN + SERIAL)
    used: list[Controls] = []
    leave = Remote.__exit__

    def look(remote: Remote, kind: object, *exc: object) -> None:
        used.append(remote.controls)
        leave(remote, kind, *exc)

    monkeypatch.setattr(Remote, "__exit__", look)
    with open_engine("labgrid:box1", print) as engine:
        engine.use(Controls(given, given, 5))  # type: ignore[attr-defined]
    ours = "labgrid-client -p box1 power cycle", "labgrid-client -p box1 console --listenonly"
    assert used == [Controls(given or ours[0], given or ours[1], 5)]


@pytest.mark.parametrize(
    ("now", "host"),
    [
        (ADDRESS, "root@testbox"),
        (f"{ADDRESS}, 'port': 2222", "ssh://root@testbox:2222"),
        ("'address': 'fe80::1', 'port': 22", "ssh://root@[fe80::1]:22"),
    ],
)
def test_its_host_is_one_of_ssh(now: str, host: str) -> None:
    place = describe("box1", SHOWN.replace(ADDRESS, now))
    assert place.host == host
    assert place.controls.console is None


@pytest.mark.parametrize(
    ("old", "now", "why"),
    [
        ("'NetworkService'", "'NetworkInterface'", "has no NetworkService"),
        ("False},\n              'username'", "True}, 'username'", "by a proxy"),
        ("'username': 'root'", "'username': '-oProxyCommand=x'", "which is not one"),
        (ADDRESS, "'address': 'a;id'", "which is not one"),
        (ADDRESS, "'address': None", "which is not one"),
        (ADDRESS, "'address': __import__('os')", "has no NetworkService"),
    ],
)
def test_what_names_no_machine_is_refused(old: str, now: str, why: str) -> None:
    assert old in SHOWN
    with pytest.raises(FscaleError, match=why):
        describe("box1", SHOWN.replace(old, now))


@pytest.mark.parametrize("on", ["labgrid:", "labgrid", "labgrid:a b", "labgrid:-x"])
def test_a_place_has_a_name(client: Path, on: str) -> None:
    with pytest.raises(FscaleError, match="not of the form labgrid:PLACE"):
        measure(on, [])


def test_without_the_client_it_is_said(client: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "TOOL_PATH", str(client))
    with pytest.raises(MissingTool, match="pip install labgrid"):
        measure("labgrid:box1", [])
