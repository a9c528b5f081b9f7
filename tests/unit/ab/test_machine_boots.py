# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that another machine boots in turn: the order, what is believed, and what is resumed."""

import re
from pathlib import Path

import pytest
from rich.console import Console

from fscale.ab import broken_boots
from fscale.ab.guest_run import execute
from fscale.ab.machine_boots import KernelSide, MachineBoots, MachinePlan
from fscale.ab.methods import PairedMethod, method_of
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.model import Comparison
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.farm.bootable import Bootable, Broken
from fscale.farm.connection import Lost
from fscale.model.errors import Exit, FscaleError, Interrupted
from fscale.model.store import Store
from fscale.model.variant import parse
from fscale.runner.request import Request
from fscale.vm.steps import Steps
from tests.support.kernel_box import Box

A, B = "6.12.0-base", "6.12.0-new"


def source(
    output: Path, box: Box, *, bisecting: bool = False, image: Path | None = None
) -> MachineBoots:
    kernels = {"A": Bootable(A), "B": Bootable(B, image)}
    sides = {n: KernelSide(parse(f"kernel:{k.release}"), k) for n, k in kernels.items()}
    plan = MachinePlan(
        sides=sides,
        arguments=["quick"],
        output=output,
        seed=1,
        settings=Settings(),
        repetitions=4,
        request=Request(suite=Path("quick"), output=output),
        bisecting=bisecting,
    )
    return MachineBoots(plan, Steps(Console(stderr=True)), box)


def test_the_sides_boot_in_turn(tmp_path: Path) -> None:
    box = Box(tmp_path / "x")
    execute(source(tmp_path / "out", box), 1e6)
    assert [sorted(box.booted[n : n + 4]) for n in (0, 4)] == [[A, A, B, B]] * 2
    assert all(box.booted[n] == box.booted[n + 3] for n in (0, 4))
    run = Store(tmp_path / "out").load_run()
    assert run
    assert run.state == "complete"
    assert run.machine.guest is None
    assert (run.suite["base"], run.suite["new"]) == (f"kernel:{A}", f"kernel:{B}")
    assert run.suite["remeasure"] == 0
    assert len(Store(tmp_path / "out").cells()) == 16
    again = Box(tmp_path / "x2")
    execute(source(tmp_path / "out", again), 1e6)
    assert not again.booted


def compared(output: Path) -> Comparison:
    return compare(open_sides(output, None), Settings())


def test_a_side_that_never_runs_is_broken(tmp_path: Path) -> None:
    box = Box(tmp_path / "x")
    boots = source(tmp_path / "out", box)
    box.broken = tuple(n for n, (name, _) in enumerate(boots._turns(1), 1) if name == "B")
    execute(boots, 1e6)
    assert sorted(box.booted) == [A, A, B, B]
    result = compared(tmp_path / "out")
    assert [point.kind for point in result.health] == ["broken"] * 2
    assert result.health[0].base.good == 2
    assert result.new.kernel == B
    reason = result.health[0].reason
    assert re.match(f"{B}: .* runs 6.1.0-own; .*; Kernel panic - not syncing: on purpose;", reason)
    (log,) = {*re.findall(r"see (boots/B\d\.log)", reason)}
    assert box.log in (tmp_path / "out" / log).read_text()
    again = Box(tmp_path / "x2")
    execute(source(tmp_path / "out", again), 1e6)
    assert not again.booted


def test_a_rebuilt_kernel_does_not_resume_a_comparison(tmp_path: Path) -> None:
    """Where only modules were rebuilt, even the build id is the same."""
    images = [tmp_path / name / "bzImage" for name in ("one", "other")]
    execute(source(tmp_path / "out", Box(tmp_path / "x"), image=images[0]), 1e6)
    source(tmp_path / "out", Box(tmp_path / "x2"), image=images[0])
    with pytest.raises(FscaleError, match=r"contains another comparison: kernels was .*'one'"):
        source(tmp_path / "out", Box(tmp_path / "x3"), image=images[1])


def test_a_broken_base_is_no_regression(tmp_path: Path) -> None:
    box = Box(tmp_path / "x")
    boots = source(tmp_path / "out", box)
    box.broken = tuple(n for n, (name, _) in enumerate(boots._turns(1), 1) if name == "A")
    with pytest.raises(FscaleError, match=f"be measured: .*{A}: .* runs 6.1.0-own") as ended:
        execute(boots, 1e6)
    assert ended.value.code == Exit.USAGE


def test_kernels_that_both_do_not_run_are_said(tmp_path: Path) -> None:
    with pytest.raises(FscaleError, match="neither kernel runs"):
        execute(source(tmp_path / "out", Box(tmp_path / "x", 1, 2, 3, 4)), 1e6)


def test_a_crash_keeps_the_figures_before_it(tmp_path: Path) -> None:
    box = Box(tmp_path / "x")
    boots = source(tmp_path / "out", box)
    box.crashes = {next(n for n, (name, _) in enumerate(boots._turns(1), 1) if name == "B")}
    execute(boots, 1e6)
    assert len(box.booted) == 8, "one crash does not end a side"
    (point,) = compared(tmp_path / "out").health
    assert (point.kind, point.subject.name) == ("broken", "DRBL tmpfs none buffered 2c 1s")
    assert (point.new.good, point.new.broken) == (3, 1)
    assert "the kernel panicked or hung in a task" in point.reason


def test_a_second_broken_boot_is_the_last(tmp_path: Path) -> None:
    box = Box(tmp_path / "x")
    boots = source(tmp_path / "out", box)
    first = next(n for n, (name, _) in enumerate(boots._turns(1), 1) if name == "B")
    later = next(n for n, (name, _) in enumerate(boots._turns(3), 5) if name == "B")
    box.broken = (first, later)
    execute(boots, 1e6)
    assert box.booted.count(B) == 3 + (later > 6)
    assert {p.kind for p in compared(tmp_path / "out").health} == {"broken"}


def test_a_broken_boot_that_is_repeated_leaves_no_trace(tmp_path: Path) -> None:
    """The command was stopped before its round ended."""
    box = Box(tmp_path / "x", 1, lost=[2, 3])
    with pytest.raises(Lost):
        execute(source(tmp_path / "out", box), 1e6)
    assert list((tmp_path / "out/boots").glob("*.log"))
    execute(source(tmp_path / "out", Box(tmp_path / "x2")), 1e6)
    assert not list((tmp_path / "out/boots").glob("*.log"))


def test_a_commit_that_does_not_run_is_no_bad_one(tmp_path: Path) -> None:
    for side in ("B", "A"):
        box = Box(tmp_path / f"x{side}")
        boots = source(tmp_path / side, box, bisecting=True)
        box.broken = tuple(n for n, (name, _) in enumerate(boots._turns(1), 1) if name == side)
        with pytest.raises(FscaleError) as ended:
            execute(boots, 1e6)
        assert isinstance(ended.value, Broken) == (side == "B")


def test_a_boot_whose_connection_broke_is_repeated_once(tmp_path: Path) -> None:
    box = Box(tmp_path / "x", lost=[3])
    execute(source(tmp_path / "out", box), 1e6)
    assert len(box.booted) == 9
    with pytest.raises(Lost):
        execute(source(tmp_path / "out2", Box(tmp_path / "x2", lost=[3, 4])), 1e6)
    again = Box(tmp_path / "x3")
    execute(source(tmp_path / "out2", again), 1e6)
    assert len(again.booted) == 6


def test_who_stops_a_boot_is_told_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise Interrupted("stopped by SIGINT")

    monkeypatch.setattr(Box, "boot", stop)
    with pytest.raises(Interrupted, match="the same command with the same --output resumes"):
        execute(source(tmp_path / "out", Box(tmp_path / "x")), 1e6)


def test_kernels_on_a_machine_are_not_guests() -> None:
    def method(on: str | None) -> PairedMethod:
        return method_of(in_guests=True, slices=None, on=on)

    assert method("ssh:box") is PairedMethod.MACHINE_BOOTS
    assert method("dask://x:1") is method(None) is PairedMethod.BOOTS


def test_a_quiet_console_is_no_crash(tmp_path: Path) -> None:
    line = broken_boots.save_evidence(
        tmp_path / "boots/B1", "it hung", "console:\n[1.0] cdrom: x\n"
    )
    quiet = "no crash is printed, and the last line is: [1.0] cdrom: x"
    assert line == f"it hung; {quiet}; see boots/B1.log"
