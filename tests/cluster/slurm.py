# SPDX-License-Identifier: GPL-2.0-only
"""Slurm on one machine: a controller, and nodes that can be killed.

It belongs in a root and in PID, network, mount and UTS namespaces of its own: it writes /etc/slurm,
takes the ports and the host name, and all its processes end with the namespace's first.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ADDRESS = "10.91.0.1"
HEAD = "head"
NODES = ("n1", "n2")
PATIENCE = 60
"""seconds for a state of the cluster to be reached"""
DOWN_AFTER = 10
"""seconds after which a silent node is down"""
GRACE = 5
"""seconds between SIGTERM and SIGKILL of a job that is past its time limit"""
MOST_JOBS = 20_000
LOGS = Path("/var/log/slurm")
_SPOOL = Path("/var/lib/slurm")
_ETC = Path("/etc/slurm")
EPILOG_FILE = _ETC / "epilog"
_FIRST_PORT = 17001

_CONFIG = f"""\
ClusterName=twins
SlurmctldHost={HEAD}({ADDRESS})
AuthType=auth/munge
SlurmUser=root
StateSaveLocation={_SPOOL}/{HEAD}
SlurmdSpoolDir={_SPOOL}/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmctldLogFile={LOGS}/{HEAD}.log
SlurmdLogFile={LOGS}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdTimeout={DOWN_AFTER}
KillWait={GRACE}
ReturnToService=2
MaxJobCount={MOST_JOBS}
MaxArraySize={MOST_JOBS + 1}
Epilog={EPILOG_FILE}
PartitionName=all Nodes={",".join(NODES)} Default=YES State=UP
"""


def call(*argv: str, seconds: float = PATIENCE) -> str:
    """Run a command and return its standard output; CalledProcessError if it fails."""
    return subprocess.run(
        argv, check=True, stdout=subprocess.PIPE, text=True, timeout=seconds
    ).stdout


def wait_for(what: str, state: Callable[[], bool], seconds: float = PATIENCE) -> float:
    """Wait until `state()` is true; return the seconds that this took.

    Raises:
        TimeoutError: it is not true after `seconds`.
    """
    began = time.monotonic()
    while not state():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"after {seconds} s: not {what}")
        time.sleep(0.1)
    return time.monotonic() - began


class Node:
    """A node: a slurmd and its jobs, in namespaces of their own, which end when it is killed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the node. The shell that is its first process reaps orphans."""
        script = f"hostname {self.name}; slurmd -D -N {self.name} & while :; do wait; sleep 1; done"
        self._process = _started(
            *("unshare", "--uts", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"),
            *("bash", "-c", script),
        )

    def kill(self) -> None:
        """Kill all its processes at once (SIGKILL), as a loss of power would."""
        assert self._process
        self._process.kill()
        self._process.wait()

    def kill_slurmd(self) -> None:
        """Kill slurmd alone; the steps of its jobs go on."""
        call("pkill", "-KILL", "-f", f"^slurmd -D -N {self.name}$")

    @property
    def state(self) -> str:
        """What Slurm says of it, such as idle, or down*."""
        return call("sinfo", "--noheader", "--format=%t", f"--nodes={self.name}").strip()


@contextlib.contextmanager
def cluster(epilog: str) -> Iterator[dict[str, Node]]:
    """Start a controller and its nodes, and wait until they are idle.

    `epilog` is a shell script that Slurm runs on a node as root after each job.
    """
    _network()
    _configure(epilog)
    _started("runuser", "-u", "munge", "--", "munged", "--foreground")
    wait_for("munged", Path("/run/munge/munge.socket.2").exists)
    _started("slurmctld", "-D")
    nodes = {name: Node(name) for name in NODES}
    for node in nodes.values():
        node.start()
    wait_for("all nodes idle", lambda: all(_state(node) == "idle" for node in nodes.values()))
    yield nodes


def _state(node: Node) -> str:
    """What Slurm says of a node; empty while the controller does not answer."""
    with contextlib.suppress(subprocess.CalledProcessError):
        return node.state
    return ""


def _network() -> None:
    """Make a link besides lo, without which getaddrinfo finds no address for a host name."""
    call("hostname", HEAD)
    call("ip", "link", "set", "lo", "up")
    call("ip", "link", "add", "cluster0", "type", "veth", "peer", "name", "cluster1")
    call("ip", "address", "add", f"{ADDRESS}/24", "dev", "cluster0")
    for end in ("cluster0", "cluster1"):
        call("ip", "link", "set", end, "up")
    with Path("/etc/hosts").open("a") as hosts:
        hosts.write(f"{ADDRESS} {HEAD} {' '.join(NODES)}\n")


def _configure(epilog: str) -> None:
    cpus = os.cpu_count()
    lines = [
        f"NodeName={name} NodeHostname={name} NodeAddr={ADDRESS} Port={port} CPUs={cpus}\n"
        for port, name in enumerate(NODES, _FIRST_PORT)
    ]
    for directory in [LOGS, Path("/run/munge"), *(_SPOOL / name for name in (HEAD, *NODES))]:
        directory.mkdir(parents=True, exist_ok=True)
    call("chown", "munge:", "/run/munge")
    (_ETC / "slurm.conf").write_text("".join(lines) + _CONFIG)
    # A machine that has both versions of cgroups is not recognized.
    (_ETC / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    EPILOG_FILE.write_text(epilog)
    EPILOG_FILE.chmod(0o755)


def _started(*argv: str) -> subprocess.Popen[bytes]:
    """Start a daemon; its messages are in LOGS."""
    with (LOGS / "daemons.log").open("ab") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
