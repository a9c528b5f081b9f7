# SPDX-License-Identifier: GPL-2.0-only
"""A guest that stands still before its init runs is booted again; a fake QEMU stands still."""

import json
import os
import subprocess
import time
from io import BytesIO, StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fscale.ab import guests as ab
from fscale.model.facts import list_changes
from fscale.model.store import Store
from fscale.runner.machine import host
from fscale.vm import guest, hang
from fscale.vm.cache import cache_root
from fscale.vm.kernel import Kernel
from fscale.vm.place import Job
from fscale.vm.qemu import Accelerator, Guest, Qemu
from fscale.vm.steps import Steps
from tests.support.files import write_program
from tests.unit.ab.test_guest_boots import boot

pytestmark = pytest.mark.slow

# Stands still as often as the file FAILING says, then runs a job that ends with 7.
QEMU = """#!/bin/sh
for word; do
	case $word in
	local,id=state,path=*) state=${word#local,id=state,path=}; state=${state%%,*} ;;
	local,id=control,path=*) control=${word#local,id=control,path=}; control=${control%%,*} ;;
	file:*) echo "[ 1.0] boot" >"${word#file:}" ;;
	esac
done
left=$(cat FAILING)
echo $((left - 1)) >FAILING
[ "$left" -le 0 ] || exec WHAT
echo >"$state/heartbeat"
sleep 1
grep FSCALE_GUEST "$control/job"
echo 7 >"$state/status"
"""
SPIN = "sh -c 'while :; do :; done'"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(hang, "STILL_SECONDS", 1.0)
    monkeypatch.setattr(guest, "BOOT_SECONDS", 15.0)


def boots(
    tmp_path: Path, failing: int, what: str = "sleep 100", accelerator: Accelerator = "tcg"
) -> tuple[guest.GuestOutcome, str, str]:
    """The outcome of a guest that stands still `failing` times; what it and the command say."""
    (tmp_path / "failing").write_text(str(failing))
    script = tmp_path / "qemu"
    write_program(script, QEMU.replace("FAILING", str(tmp_path / "failing")).replace("WHAT", what))
    kernel = Kernel("a kernel", "6.1", Path("/k/bzImage"), Path("/k/initramfs"), None)
    made = Guest(kernel, smp=1, accelerator=accelerator)
    said, noted = BytesIO(), StringIO()
    steps = Steps(Console(file=noted, width=200))
    outcome = guest.run(made, Qemu((str(script),), None, "10"), Job(["true"]), steps, said)
    return outcome, said.getvalue().decode(), noted.getvalue()


def kept(name: str) -> Path:
    return cache_root() / "last-guest" / name


def test_a_guest_that_stood_still_is_booted_again_and_says_so(tmp_path):
    started = time.monotonic()
    outcome, said, noted = boots(tmp_path, failing=2)
    assert (outcome.end, outcome.returncode, outcome.stood_still) == ("finished", 7, 2)
    assert time.monotonic() - started < guest.BOOT_SECONDS
    assert '"stood_still": 2' in said
    assert "(3 of 3)" in noted
    assert json.loads(kept("outcome.json").read_text())["stood_still"] == 2
    assert kept("stood-still-2.log").read_text() == "[ 1.0] boot\n"


def test_the_number_of_boots_is_bounded_and_the_last_has_the_whole_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(guest, "BOOT_SECONDS", 5.0)
    outcome, _, _ = boots(tmp_path, failing=9)
    assert (outcome.end, outcome.stood_still) == ("still", 2)
    assert outcome.seconds > 5
    assert "stalled during its boot (3 times)" in str(guest.GuestError(outcome))


def test_a_guest_that_is_busy_until_the_limit_is_booted_again(tmp_path, monkeypatch):
    monkeypatch.setattr(guest, "BOOT_SECONDS", 3.0)
    outcome, _, _ = boots(tmp_path, failing=1, what=SPIN)
    assert (outcome.end, outcome.stood_still) == ("finished", 1)


def test_a_kernel_that_hangs_without_emulation_is_booted_once(tmp_path, monkeypatch):
    monkeypatch.setattr(guest, "BOOT_SECONDS", 1.0)
    outcome, _, _ = boots(tmp_path, failing=1, accelerator="kvm")
    assert (outcome.end, outcome.stood_still) == ("still", 0)


@pytest.mark.parametrize("what", [SPIN, "sh -c 'while :; do echo >>console; sleep 0.2; done'"])
def test_a_busy_or_a_speaking_guest_does_not_stand_still(tmp_path, monkeypatch, what):
    # Other tests may keep the CPU for a second.
    monkeypatch.setattr(hang, "STILL_SECONDS", 3.0)
    with subprocess.Popen(["sh", "-c", f"exec {what}"], cwd=tmp_path) as process:
        watch = hang.Watch(process.pid, tmp_path / "console")
        looks = []
        for _ in range(40):
            time.sleep(0.1)
            looks.append(watch.still())
        process.kill()
    assert not any(looks)


def test_a_guest_that_waits_for_a_cpu_wants_one():
    cpu = min(os.sched_getaffinity(0))
    argv = ["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]
    spinners = [subprocess.Popen(argv) for _ in range(3)]
    try:
        pid = spinners[0].pid
        wanted, used = hang.wanted_seconds(pid), cpu_seconds(pid)
        # Seconds of the clock would not do: the kernel counts a wait when it ends, and tasks of
        # other tests, or of other virtual machines, may keep the CPU for most of them.
        while cpu_seconds(pid) - used < 0.3:
            time.sleep(0.1)
        wanted, used = hang.wanted_seconds(pid) - wanted, cpu_seconds(pid) - used
    finally:
        for process in spinners:
            process.kill()
            process.wait()
    # Three share one CPU: each waits for twice the time that it has.
    assert wanted > 2 * used


def cpu_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_a_run_that_is_continued_after_a_guest_stood_still_is_the_same(tmp_path):
    runs = []
    for repetition in (1, 2):
        boot(tmp_path, "A", repetition, 1.0, stood_still=repetition - 1)
        run = Store(ab.boot_directory(tmp_path, "A", repetition)).load_run()
        assert run is not None
        runs.append(run)
    assert list_changes(*runs) == []
    assert any("1 boots of the guest hung" in text for text in host.warnings(runs[1].machine))
