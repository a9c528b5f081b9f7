# SPDX-License-Identifier: GPL-2.0-only
"""The engine `labgrid:PLACE`: a machine that labgrid manages is acquired, and reached by ssh.

labgrid's own client is asked, whose coordinator is that of the user's environment. Its power switch
resets the machine, and its serial port is the console, unless the user gives other commands.
"""

import ast
import contextlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fscale.farm import programs
from fscale.farm.controls import Controls
from fscale.farm.engine import Say
from fscale.farm.ssh import HOST, Ssh
from fscale.model.errors import FscaleError, MissingTool
from fscale.system.executor import CommandFailed, which

CLIENT = "labgrid-client"
_ON = re.compile(r"labgrid:(?P<place>[A-Za-z0-9_][\w.+-]{0,100})")
_OURS = "already acquired place"
"""what the client says of a place that this user holds"""
# A heading, and an indented dictionary as Python prints it.
_RESOURCE = re.compile(r"^(?:Acquired r|R|Matching r)esource '.*\n((?:  .*\n?)+)", re.MULTILINE)
_POWER = re.compile(r"Power|PDU")
_SERIAL = re.compile(r"SerialPort")


@contextlib.contextmanager
def open_engine(on: str, say: Say) -> Iterator[Ssh]:
    """Open the engine for a `--on` of the form labgrid:PLACE; see fscale.farm.engine.

    The place is released at the end, unless the user held it before.

    Raises:
        MissingTool: this machine has no client of labgrid.
        FscaleError: the option has another form, another user holds the place, the place names no
            machine for ssh, or see fscale.farm.ssh.
    """
    named = _ON.fullmatch(on)
    if named is None:
        raise FscaleError(f"--on {on}: not of the form labgrid:PLACE; see `{CLIENT} places`")
    if which(CLIENT) is None:
        raise MissingTool(f"{CLIENT} is not installed; pip install labgrid")
    with _acquired(named["place"], say):
        place = describe(named["place"], _client(named["place"], "show"))
        with _Placed(place, say) as engine:
            yield engine


@dataclass(frozen=True)
class Place:
    """What a place says of its machine."""

    host: str
    """as ssh takes it"""
    controls: Controls


def describe(name: str, shown: str) -> Place:
    """Read what `labgrid-client show` prints of an acquired place.

    Raises:
        FscaleError: it names no machine, or one that is only reached by labgrid's proxy.
    """
    found: dict[str, dict[str, Any]] = {}
    for text in _RESOURCE.findall(shown):
        with contextlib.suppress(ValueError, SyntaxError, KeyError, TypeError):
            resource = ast.literal_eval(text.strip())
            found.setdefault(str(resource["cls"]), dict(resource["params"]))
    service = found.get("NetworkService")
    if service is None:
        raise FscaleError(f"labgrid's place {name} has no NetworkService, which names a host")
    user, address = service.get("username", "root"), service.get("address")
    host = f"{user}@{address}"
    if not isinstance(address, str) or not re.fullmatch(HOST, host):
        raise FscaleError(f"labgrid's place {name} names the host {host[:80]!r}, which is not one")
    if (service.get("extra") or {}).get("proxy_required"):
        raise FscaleError(
            f"labgrid reaches {host} by a proxy: acquire the place, give the host a ProxyJump in "
            f"~/.ssh/config, and measure --on ssh:{host}"
        )
    if "port" in service:
        address = f"[{address}]" if ":" in address else address
        host = f"ssh://{user}@{address}:{int(service['port'])}"
    client = f"{CLIENT} -p {shlex.quote(name)}"
    return Place(
        host,
        Controls(
            reset=f"{client} power cycle" if any(map(_POWER.search, found)) else None,
            console=f"{client} console --listenonly" if any(map(_SERIAL.search, found)) else None,
        ),
    )


class _Placed(Ssh):
    """The machine of a place."""

    def __init__(self, place: Place, say: Say) -> None:
        super().__init__(place.host, say)
        self._controls = place.controls

    def use(self, controls: Controls) -> None:
        ours = self._controls
        super().use(
            replace(
                controls,
                reset=controls.reset or ours.reset,
                console=controls.console or ours.console,
            )
        )


@contextlib.contextmanager
def _acquired(place: str, say: Say) -> Iterator[None]:
    try:
        _client(place, "acquire")
    except CommandFailed as error:
        if _OURS not in str(error):
            raise
        say(f"labgrid's place {place} was acquired before, and stays so")
        yield
        return
    try:
        yield
    finally:
        _client(place, "release")


def _client(place: str, command: str) -> str:
    return programs.run(CLIENT, "-p", place, command)
