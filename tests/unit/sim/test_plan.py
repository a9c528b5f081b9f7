# SPDX-License-Identifier: GPL-2.0-only
"""What a simulated guest and its plugin are told."""

import re
import shlex

import pytest

from fscale.model import catalogue, paths
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey
from fscale.sim import machine, plan, sweep
from fscale.sim.machine import Method
from fscale.sim.plan import GuestPoint
from tests.support import synthetic


def key(workload: str = "DRBH", fs: str = "ext4", cores: int = 4, repetition: int = 1) -> CellKey:
    return synthetic.key(
        repetition,
        workload=workload,
        filesystem=fs,
        medium="none" if fs == "tmpfs" else "brd",
        cores=cores,
        options={"block": 512} if workload == "DRBH" else {},
    )


@pytest.mark.parametrize("name", catalogue.names(machine.MACHINES))
def test_the_plugin_is_told_all_that_it_asks_for(name: str) -> None:
    told = machine.parameters(machine.load(name), Method(), 2, 1024)
    header = (paths.ROOT / "fscale/sim" / "parameters.h").read_text()
    asked = set(re.findall(r"^\tX\((\w+), \d", header, re.M))
    assert asked
    assert told.keys() == asked


def test_an_unknown_machine_is_told_near_names() -> None:
    with pytest.raises(FscaleError, match="did you mean paper"):
        machine.load("papr")


def test_sockets_are_those_of_the_model() -> None:
    paper = machine.load("paper")
    assert plan.sockets(paper, 80).option == "80,sockets=8,cores=10,threads=1,maxcpus=80"
    assert plan.sockets(paper, 16).option == "16,sockets=2,cores=10,threads=1,maxcpus=20"
    assert plan.sockets(paper, 4).option == "4,sockets=1,cores=4,threads=1,maxcpus=4"
    with pytest.raises(FscaleError, match="81 cores were requested"):
        plan.sockets(paper, 81)


def test_the_script_says_how_each_point_is_made() -> None:
    filesystems = {name: catalogue.load_filesystem(name) for name in ("tmpfs", "ext4")}
    media = {"brd": catalogue.load_medium("brd")}
    points = [GuestPoint(0, key(), 7), GuestPoint(1, key("MWCM", "tmpfs", 80), 8, 1)]
    text = plan.script(points, filesystems, media, plan.fixed(5, 200), 4 << 30)
    ext4, tmpfs = (shlex.split(line) for line in text.splitlines())
    assert ext4[:7] == ["point", "0", "4", "brd", str(1 << 20), "ext4", "noatime"]
    mkfs = shlex.split(ext4[7])
    assert (mkfs[0], mkfs[-1]) == ("mkfs.ext4", "/dev/ram0")
    assert ext4[8:] == shlex.split(
        "fscale-bench --dir /mnt --cpus 0-3 --workload DRBH --mode buffered --windows 5 "
        "--window-ns 200000 --window-ops 200 --roi 0,7,0 --option block=512"
    )
    assert tmpfs[:8] == shlex.split(
        f"point 1 80 none {1 << 20} tmpfs noatime,size={1 << 30},nr_inodes=0 ''"
    )
    assert "1,8,1" in tmpfs
    # Four operations a core, where 200 would be fewer.
    assert tmpfs[tmpfs.index("--window-ops") + 1] == "320"


def test_windows_that_end_by_precision_are_short_and_many() -> None:
    windows = plan.precise(0.02)
    assert windows.arguments == shlex.split("--windows 48 --window-ns 25000 --precision 20")
    assert (windows.of(1), windows.of(80)) == (64, 160)
    assert "--precision" not in plan.fixed(5, 512).arguments


def test_most_cores_come_first_for_cpus_only_go_off_line() -> None:
    points = [GuestPoint(n, key(cores=cores), 1) for n, cores in enumerate((1, 80, 8, 80))]
    assert [p.number for p in plan.order(points)] == [1, 3, 2, 0]


def test_groups_cost_the_same_and_lose_nothing() -> None:
    keys = [key(cores=cores) for cores in (1, 2, 4, 8, 16, 32, 64, 80)]
    groups = sweep.split(keys, 2)
    assert sorted(k.cores for g in groups for k in g) == sorted(k.cores for k in keys)
    costs = [sum(map(sweep.cost, group)) for group in groups]
    assert max(costs) < 1.1 * min(costs)
    assert sweep.split(keys[:1], 4) == [keys[:1]]
