# SPDX-License-Identifier: GPL-2.0-only
"""A profiler that is there and does not work is left out before the run, in its tool's words."""

from collections.abc import Mapping
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import pytest

from fscale.model import paths
from fscale.runner import doctor, profilers, resources
from fscale.runner.features import FEATURES
from fscale.runner.profilers import base, btf, kallsyms, locks, usable
from fscale.runner.profilers.base import Tool, ToolProfiler
from fscale.runner.profilers.context import Context
from fscale.runner.profilers.locks import Locks
from fscale.runner.profilers.offcpu import OffCpu
from fscale.runner.profilers.workers import workers
from fscale.system import namespaces
from tests.support import synthetic
from tests.support.files import write_program


class Broken(ToolProfiler):
    """A profiler whose tool ends at once."""

    name = "cpu"

    def unavailable(self) -> str | None:
        """See Profiler."""
        return None

    def attach(self, context: Context) -> None:
        """See Profiler."""
        argv = ["sh", "-c", "echo Permission denied by lockdown >&2; exit 1"]
        self.run_tool(Tool(argv, context.output / "log"))

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self.finish_tool()
        return {}


class Working(Broken):
    """A profiler whose tool waits until it is told to end."""

    def attach(self, context: Context) -> None:
        """See Profiler."""
        self.run_tool(Tool([Tool.CHILD], context.output / "log"))


def test_a_tool_that_fails_is_left_out_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(profilers.PROFILERS, "cpu", Broken)
    found, skipped = usable(["cpu"])
    assert found == []
    assert "Permission denied by lockdown" in skipped["cpu"]
    monkeypatch.setitem(profilers.PROFILERS, "cpu", Working)
    found, skipped = usable(["cpu"])
    assert [profiler.name for profiler in found] == ["cpu"]
    assert skipped == {}


def test_the_doctor_says_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(profilers.PROFILERS, "cpu", Broken)
    feature = next(one for one in FEATURES if "cpu" in one.profilers)
    monkeypatch.setattr(doctor, "FEATURES", [type(feature)(feature.name, {}, profilers=("cpu",))])
    found = {finding.name: finding for finding in doctor.examine([])}[feature.name]
    assert not found.good
    assert "Permission denied by lockdown" in found.detail


@pytest.mark.parametrize("mounted", [True, False])
@pytest.mark.parametrize(
    "bpftrace", ["#!/bin/sh\nexit 0\n", "#!/nonexistent/sh\n", "\x7fELF of another machine"]
)
def test_bpftrace_is_tried_whether_or_not_tracefs_is_mounted(
    mounted: bool, bpftrace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "TRACEFS", tmp_path)
    if mounted:
        (tmp_path / "events").mkdir()
    write_program(tmp_path / "bpftrace", bpftrace)
    monkeypatch.setattr(base, "which", lambda _name: str(tmp_path / "bpftrace"))
    monkeypatch.setattr(OffCpu, "unavailable", lambda _self: None)
    assert "it was tried and failed" in usable(["offcpu"])[1]["offcpu"]


@pytest.mark.parametrize("error", [OSError("Exec format error"), TimeoutExpired("perf", 60)])
def test_a_tool_that_cannot_even_be_asked_is_left_out(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(_self: Broken) -> None:
        raise error

    monkeypatch.setitem(profilers.PROFILERS, "cpu", Broken)
    monkeypatch.setattr(Broken, "unavailable", unavailable)
    assert str(error) in usable(["cpu"])[1]["cpu"]


def test_types_that_cannot_be_read_leave_the_lock_profile_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vmlinux").write_bytes(b"not BTF")
    monkeypatch.setattr(btf, "VMLINUX", tmp_path / "vmlinux")
    monkeypatch.setattr(paths, "LOCKS", Path("/bin/true"))
    monkeypatch.setattr(btf.load, "__defaults__", (tmp_path / "vmlinux",))
    assert "BTF cannot be read" in (Locks().unavailable() or "")


@pytest.mark.parametrize(
    ("symbols", "level", "hidden"),
    [
        ("0000000000000000 T _stext\n0000000000000000 t f\n", "2", "kernel.kptr_restrict=1"),
        ("0000000000000000 T _stext\n", "1", "CAP_SYSLOG"),
        ("0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n", "1", None),
        (None, "1", "CONFIG_KALLSYMS"),
    ],
)
def test_hidden_symbols_are_said(
    tmp_path: Path, symbols: str | None, level: str, hidden: str | None
) -> None:
    table, restriction = tmp_path / "kallsyms", tmp_path / "kptr_restrict"
    restriction.write_text(f"{level}\n")
    if symbols:
        table.write_text(symbols)
    reason = kallsyms.why_hidden(table, restriction)
    assert reason is None if hidden is None else hidden in (reason or "")
    assert (kallsyms.Kallsyms(table).function(0xFFFFFFFF81000001) == "_stext+1") == (hidden is None)


def test_a_run_without_profiles_needs_no_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kallsyms, "why_hidden", lambda: "zeros")
    assert resources.hidden_symbols({}) == []
    assert "zeros" in resources.hidden_symbols({"cpu": Working()})[0]


def test_a_profile_that_did_not_see_the_load_is_an_error() -> None:
    profiler = Working()
    for watched, status in ((None, "ok"), (5, "ok"), (0, "error")):
        profiler.watched = watched
        cell = synthetic.cell(synthetic.key(1, profile="cpu"), 100.0)
        profiler.complete(cell)
        assert cell.status == status
    failed = synthetic.cell(synthetic.key(1, profile="cpu"), 100.0, status="error", reason="mine")
    profiler.complete(failed)
    assert failed.reason == "mine"


@pytest.mark.parametrize("initial", [True, False, None])
def test_workers_are_not_told_by_a_number_of_another_pid_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, initial: bool | None
) -> None:
    monkeypatch.setattr(namespaces, "initial", lambda _kind: initial)
    context = base._trial(tmp_path)
    told = locks.settings(context, None)["pid"]
    assert told == (0 if initial is False else context.pid)
    assert (f"tgid == {context.pid}" in workers(context).probes) == (initial is not False)
