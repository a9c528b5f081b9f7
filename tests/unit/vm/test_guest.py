# SPDX-License-Identifier: GPL-2.0-only
"""Guests without booting one: kernels, command lines, consoles, the cache."""

import os
import struct
import subprocess
import sys
import time
from io import BytesIO, StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fscale.model import paths
from fscale.model.errors import FscaleError, MissingTool
from fscale.vm import cache, console, guest, initramfs, kbuild, kernel, qemu, rootfs
from fscale.vm.kernel import Kernel
from fscale.vm.place import Job, JobFiles, Share, write_control
from fscale.vm.qemu import Guest, Qemu
from fscale.vm.steps import StepError, Steps, need


@pytest.fixture
def steps():
    return Steps(Console(file=StringIO()))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def bzimage(path: Path, release: str) -> Path:
    data = bytearray(2048)
    data[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", data, 0x20E, 0x300)
    data[0x500 : 0x500 + len(release) + 5] = f"{release} (me)"[: len(release) + 5].encode()
    path.write_bytes(data)
    return path


PANIC = """\
[    1.000000] EXT4-fs (loop0): mounted filesystem
[   13.974539] BUG: kernel NULL pointer dereference, address: 0000000000000010\r
[   13.974600] RIP: 0010:my_lookup+0x12/0x40 [myfs]\r
[   13.974700] Call Trace:\r
[   13.974800] ---[ end trace 0000000000000000 ]---\r
[   13.974900] Kernel panic - not syncing: Fatal exception\r
"""
OOM = """\
[    9.1] python3 invoked oom-killer: gfp_mask=0x1, order=0
[    9.2] Mem-Info:
[    9.3] Out of memory: Killed process 170 (python3) total-vm:525824kB
[    9.4] reboot: Power down
"""


def test_a_panic_is_found_with_its_first_report():
    verdict = console.judge(PANIC)
    assert verdict.trouble == "panic"
    assert verdict.summary == "BUG: kernel NULL pointer dereference, address: 0000000000000010"
    assert verdict.report is not None
    assert verdict.report.splitlines()[-1].endswith("---[ end trace 0000000000000000 ]---")
    assert "my_lookup" in verdict.report
    assert "\r" not in verdict.report


def test_running_out_of_memory_is_not_a_panic():
    verdict = console.judge(OOM)
    assert verdict.trouble == "oom"
    assert verdict.report is not None
    assert verdict.report.splitlines()[0].endswith("order=0")
    assert "Power down" not in verdict.report


def test_a_warning_is_reported_and_not_fatal():
    verdict = console.judge("[ 1.0] WARNING: CPU: 0 PID: 1 at fs/inode.c:1\n[ 1.1] x\n")
    assert (verdict.trouble, verdict.summary) == (None, "WARNING: CPU: 0 PID: 1 at fs/inode.c:1")


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: possible circular locking dependency detected",
        "WARNING: possible recursive locking detected",
        "WARNING: inconsistent lock state",
        "WARNING: suspicious RCU usage",
        "WARNING: bad unlock balance detected!",
        "WARNING: held lock freed!",
        "INFO: trying to register non-static key.",
        "BUG: KASAN: slab-use-after-free in lanefs_handle_start+0x1/0x2",
        "BUG: sleeping function called from invalid context at mm/slab.c:1",
    ],
)
def test_reports_of_lockdep_and_kasan_are_found(line):
    log = f"[ 1.0] x\n[ 2.0] =====\n[ 2.0] {line}\n[ 2.1] mount/1 is trying\n"
    assert console.judge(log).summary == line


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("WARNING: CPU: 3 PID: 7 at fs/x.c:12 f+0x1/0x2", "warning"),
        ("WARNING: possible circular locking dependency detected", "lockdep"),
        ("BUG: KASAN: slab-use-after-free in f+0x1/0x2", "oops"),
        ("general protection fault, probably for non-canonical address", "oops"),
        ("Kernel panic - not syncing: x", "panic"),
        ("fio invoked oom-killer: gfp_mask=0x0", "out-of-memory"),
        ("INFO: task mount:7 blocked for more than 120 seconds.", "stall"),
        ("watchdog: BUG: soft lockup - CPU#0 stuck for 22s!", "stall"),
    ],
)
def test_the_kind_of_a_report(line, kind):
    summary = console.judge(f"[ 1.0] {line}\n").summary
    assert kind in console.kind_of(summary)


def test_a_quiet_console_says_nothing():
    assert console.judge("[ 1.0] Linux version\n") == console.KernelReport(None, None, None)


def test_release_comes_from_the_header(tmp_path):
    assert kernel.release_of(bzimage(tmp_path / "bzImage", "6.12.1-my")) == "6.12.1-my"


def test_a_file_that_is_no_kernel_is_refused(tmp_path, steps):
    (tmp_path / "vmlinux").write_bytes(b"\x7fELF" + bytes(2048))
    with pytest.raises(FscaleError, match="not an x86 bzImage"):
        kernel.resolve(str(tmp_path / "vmlinux"), steps)


def test_an_unknown_kernel_is_refused_with_the_choices(steps):
    with pytest.raises(
        FscaleError, match=r"unknown kernel woody; give bookworm, trixie, sid, 6\.1"
    ):
        kernel.resolve("woody", steps)


def test_a_tree_that_was_not_built_is_refused(tmp_path, steps):
    with pytest.raises(FscaleError, match="run make there first"):
        kernel.resolve("bookworm", steps, tree=tmp_path)


def test_modules_of_another_release_are_refused(tmp_path, steps):
    image = bzimage(tmp_path / "bzImage", "6.12.1")
    (tmp_path / "modules").mkdir()
    with pytest.raises(FscaleError, match=r"no modules of 6\.12\.1"):
        kernel.resolve(str(image), steps, modules=tmp_path / "modules")


def module_tree(tmp_path: Path) -> Path:
    modules = tmp_path / "6.12.1"
    modules.mkdir()
    (modules / "modules.dep").write_text(
        "kernel/virtio_ring.ko:\n"
        "kernel/virtio.ko: kernel/virtio_ring.ko\n"
        "kernel/virtio-blk.ko.xz: kernel/virtio.ko kernel/virtio_ring.ko\n"
    )
    (modules / "modules.builtin").write_text("kernel/fs/squashfs.ko\n")
    return modules


def test_modules_load_after_what_they_need(tmp_path):
    order = initramfs.load_order(module_tree(tmp_path), ("virtio_blk", "squashfs"))
    assert order == ["kernel/virtio_ring.ko", "kernel/virtio.ko", "kernel/virtio-blk.ko.xz"]


def test_a_kernel_without_a_needed_driver_is_refused(tmp_path):
    with pytest.raises(FscaleError, match=r"6\.12\.1 has no overlay"):
        initramfs.load_order(module_tree(tmp_path), ("overlay",))


def test_a_cache_entry_is_built_once_and_only_whole():
    built = []

    def fail(directory: Path) -> None:
        (directory / "half").touch()
        raise FscaleError("no")

    def build(directory: Path) -> None:
        built.append(directory)
        (directory / "file").write_text("x")

    with pytest.raises(FscaleError):
        cache.entry("kind", "key", fail)
    assert not (cache.cache_root() / "kind" / "key").exists()
    first = cache.entry("kind", "key", build)
    assert (first / "file").read_text() == "x"
    assert not (first / "half").exists()
    assert cache.entry("kind", "key", build) == first
    assert len(built) == 1


def test_old_entries_are_pruned_and_the_current_one_is_not():
    old, current = (cache.entry("kind", key, lambda _: None) for key in ("old", "current"))
    fresh = cache.entry("kind", "fresh", lambda _: None)
    for path in (old, current):
        os.utime(path, (0, 0))
    cache.prune(current)
    assert (old.exists(), current.exists(), fresh.exists()) == (False, True, True)


def test_the_cache_directory_that_cannot_be_made_is_explained(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(FscaleError, match="set XDG_CACHE_HOME"):
        cache.entry("kind", "key", lambda _: None)


def test_a_failed_step_shows_what_the_command_said(steps):
    with pytest.raises(StepError, match=r"(?s)trying.*exit code 3.*so wrong"):
        steps.run([sys.executable, "-c", "print('so wrong'); exit(3)"], "trying")


def test_a_missing_tool_names_its_package():
    with pytest.raises(MissingTool, match="apt-get install nowhere"):
        need("no-such-tool", "nowhere")


def a_guest(accelerator: qemu.Accelerator = "tcg") -> Guest:
    made = Kernel("a kernel", "6.1", Path("/k/bzImage"), Path("/k/initramfs.cpio"), None)
    return Guest(made, smp=4, memory="2G", accelerator=accelerator, append="extra=1")


def command_line(accelerator: qemu.Accelerator = "tcg", held: Path | None = None) -> str:
    argv = qemu.command(
        Qemu(("qemu",), None, "10.0.0"),
        a_guest(accelerator),
        images={"root": Path("/i,j/root.squashfs")},
        shares=[Share("control", Path("/c"), False), Share("results", Path("/r,s"), True)],
        console=Path("/c/console.log"),
        monitor=Path("/c,d/monitor"),
        held=held,
    )
    return " ".join(argv)


def test_the_command_line_has_what_was_asked_for():
    line = command_line()
    assert "-smp 4 -m 2048M" in line
    assert "-accel tcg,thread=multi" in line
    assert "-kernel /k/bzImage -initrd /k/initramfs.cpio" in line
    assert "file=/i,,j/root.squashfs,format=raw,if=none,id=root,readonly=on" in line
    assert "serial=root" in line
    assert "-monitor unix:/c,,d/monitor,server=on" in line
    assert "local,id=control,path=/c,security_model=mapped-xattr,readonly=on" in line
    assert "local,id=results,path=/r,,s,security_model=mapped-xattr,fmode=0644" in line
    assert "virtio-9p-pci,fsdev=results,mount_tag=results" in line
    assert "-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny" in line
    assert "panic=-1" in line
    assert "-no-reboot" in line
    assert "extra=1" in line


def test_a_guest_that_is_held_has_a_line_of_its_own():
    line = command_line(held=Path("/h,i"))
    assert "-qmp unix:/h,,i/qmp,server=on,wait=off" in line
    assert "socket,id=line,path=/h,,i/line,server=on,wait=off" in line
    assert "isa-serial,chardev=line,index=2" in line
    assert "isa-serial" not in command_line()


def test_the_deterministic_way_is_single_threaded_and_counts_instructions():
    assert "thread=single" in command_line("tcg-icount")
    assert "-icount shift=1,sleep=off" in command_line("tcg-icount")


def test_results_say_how_they_are_to_be_read():
    about = guest.describe(a_guest(), Qemu(("qemu",), None, "10.0.13"))
    assert about["label"] == "emulated: ratios only"
    assert (about["accelerator"], about["qemu"], about["kernel"]) == ("tcg", "10.0.13", "a kernel")
    assert "instruction cost" in str(
        guest.describe(a_guest("tcg-icount"), Qemu(("q",), None, "1"))["label"]
    )


@pytest.mark.parametrize(("wanted", "deterministic"), [("kvm", True), ("xen", False)])
def test_an_impossible_accelerator_is_refused(wanted, deterministic, steps):
    with pytest.raises(FscaleError):
        qemu.accelerator(wanted, deterministic, Qemu(("q",), None, "1"), a_guest().kernel, steps)


def control(tmp_path: Path, job: Job) -> Path:
    directory = tmp_path / "control"
    directory.mkdir()
    write_control(directory, job, {"label": "it's emulated"})
    return directory


def test_the_job_script_passes_every_argument_unchanged(tmp_path):
    awkward = ["a b", "$HOME", "'", '"', "*"]
    shown = [sys.executable, "-c", "import sys; print(sys.argv[1:])", *awkward]
    directory = control(tmp_path, Job(argv=shown))
    script = (directory / "job").read_text().replace("cd /fscale", "cd /")
    script = script.replace("/run/job-status", str(tmp_path / "status"))
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(awkward)
    assert (tmp_path / "status").read_text() == "0\n"


def test_modules_are_loaded_in_the_order_given(tmp_path):
    for name in ("b.ko", "a.ko"):
        (tmp_path / name).touch()
    directory = control(tmp_path, Job(["true"], modules=[tmp_path / "b.ko", tmp_path / "a.ko"]))
    assert (directory / "modules" / "order").read_text() == "b.ko\na.ko\n"


def test_a_module_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FscaleError, match=r"no\.ko does not exist"):
        control(tmp_path, Job(["true"], modules=[tmp_path / "no.ko"]))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_the_guest_dies_with_a_killed_parent(tmp_path):
    starter = (
        "import subprocess, sys, time; from fscale.vm.qemu import protected\n"
        "child = subprocess.Popen(protected(['sleep', '100']), start_new_session=True)\n"
        "print(child.pid, flush=True); time.sleep(100)"
    )
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        comm = Path(f"/proc/{pid}/comm")
        deadline = time.monotonic() + 10
        while comm.read_text() != "sleep\n" and time.monotonic() < deadline:
            time.sleep(0.01)
        parent.kill()
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pid)


@pytest.fixture
def where(tmp_path) -> JobFiles:
    made = JobFiles(tmp_path / "run")
    for directory in (made.control, made.state):
        directory.mkdir(parents=True)
    return made


def fake_machine(where: JobFiles, script: str) -> guest.QemuProcess:
    return guest.QemuProcess(["sh", "-c", script], dict(os.environ), where)


def follow(
    machine: guest.QemuProcess,
    steps: Steps,
    timeout: float = 60,
    sink: BytesIO | None = None,
    hold: guest.Hold | None = None,
):
    started = time.monotonic()
    hold = hold or guest.Hold()
    return guest._follow(machine, timeout, started, None, steps, sink or BytesIO(), hold)


def test_a_guest_that_never_boots_stands_still(where, steps, monkeypatch):
    monkeypatch.setattr(guest, "BOOT_SECONDS", 0.2)
    with fake_machine(where, "sleep 100") as machine:
        end = follow(machine, steps)
    assert end == ("still", None)
    assert not alive(machine.process.pid)


@pytest.mark.parametrize("age", [0, -3600])  # the clock of the host was set back
def test_a_guest_that_falls_silent_hangs(where, steps, monkeypatch, age):
    monkeypatch.setattr(guest, "SILENT_SECONDS", 0.2)
    (where.state / "heartbeat").touch()
    os.utime(where.state / "heartbeat", times=(time.time() - age,) * 2)
    with fake_machine(where, "sleep 100") as machine:
        end, booted = follow(machine, steps, timeout=5)
    assert end == "hang"
    assert booted is not None


def test_a_guest_whose_clocks_stand_does_not_hang(where, steps, monkeypatch):
    monkeypatch.setattr(guest, "SILENT_SECONDS", 0.2)
    (where.state / "heartbeat").touch()
    hold = guest.Hold(stopped=True)
    with fake_machine(where, "sleep 100") as machine:
        end, _ = follow(machine, steps, timeout=1.5, hold=hold)
    assert end == "timeout"


def test_a_guest_that_nobody_needs_any_more_is_ended(where, steps):
    with fake_machine(where, "sleep 100") as machine:
        end, _ = follow(machine, steps, hold=guest.Hold(end=True))
    assert end == "ended"
    assert not alive(machine.process.pid)


def test_the_time_limit_ends_a_busy_guest(where, steps):
    script = f"while :; do echo >{where.state}/heartbeat; sleep 0.1; done"
    with fake_machine(where, script) as machine:
        end, _ = follow(machine, steps, timeout=0.5)
    assert end == "timeout"


def test_the_jobs_output_is_relayed(where, steps):
    sink = BytesIO()
    with fake_machine(where, "echo hello") as machine:
        end, _ = follow(machine, steps, sink=sink)
    assert (end, sink.getvalue()) == ("finished", b"hello\n")


@pytest.mark.parametrize(
    ("log", "status", "end"),
    [
        ("quiet", "0", "finished"),
        (PANIC, None, "panic"),
        (OOM, "1", "oom"),
        (OOM, "0", "finished"),
        ("quiet", None, "died"),
        ("quiet", "-1; rubbish", "died"),
    ],
)
def test_how_a_guest_ended(where, log, status, end):
    where.console.write_text(log)
    if status:
        (where.state / "status").write_text(status)
    assert guest._judge(where, "finished", 1.0, 2.0, None).end == end


def test_a_panic_that_we_provoked_is_not_a_report(where):
    where.console.write_text("quiet\n" + PANIC)
    outcome = guest._judge(where, "timeout", 1.0, 2.0, len("quiet\n"))
    assert (outcome.end, outcome.summary) == ("timeout", None)
    assert outcome.report is not None
    assert "my_lookup" in outcome.report


def test_options_that_a_kernel_did_not_take_are_named():
    config = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_D=m\n"
    assert (
        kbuild.unmet_options("CONFIG_A=y\n# CONFIG_B is not set\n# CONFIG_C is not set\n", config)
        == []
    )
    assert kbuild.unmet_options("CONFIG_D=y\nCONFIG_E=y\n", config) == ["CONFIG_D=y", "CONFIG_E=y"]
    assert kbuild.unmet_options("# CONFIG_A is not set\n", config) == ["# CONFIG_A is not set"]


def test_every_configuration_builds_on_the_default_one():
    assert set(kbuild.configs()) >= {"default", "lockstat", "debug", "kcsan"}
    assert "CONFIG_LOCK_STAT=y" in kbuild.fragment("lockstat")
    assert "CONFIG_VIRTIO_BLK=y" in kbuild.fragment("debug")
    with pytest.raises(FscaleError, match="unknown kernel configuration"):
        kbuild.fragment("lokstat")


def test_a_changed_source_file_changes_the_digest_and_a_built_one_does_not(tmp_path):
    (tmp_path / "a.c").write_text("1")
    before = kbuild.source_digest(tmp_path)
    (tmp_path / "a.o").write_text("1")
    assert kbuild.source_digest(tmp_path) == before
    (tmp_path / "a.c").write_text("12")
    assert kbuild.source_digest(tmp_path) != before


def test_a_directory_without_a_makefile_is_no_module(tmp_path, steps):
    with pytest.raises(FscaleError, match="not the source of a module"):
        kbuild.build_module(tmp_path, kbuild.suite_target("6.1", "6.1.0"), steps)


def test_a_makefile_that_builds_no_module_is_told_each_time(tmp_path, steps, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("tree", "source"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Makefile").write_text("modules:\n")
    target = kbuild.BuildTarget(None, "6.1.0", tmp_path / "tree", "key")
    for _ in range(2):
        with pytest.raises(FscaleError, match=r"builds no module for 6\.1\.0"):
            kbuild.build_module(tmp_path / "source", target, steps)


def test_a_module_is_built_for_a_suite_or_a_built_tree(tmp_path):
    assert kbuild.suite_target("trixie:linux-image-x", "6.12.1").suite == "trixie"
    with pytest.raises(FscaleError, match="--kernel-tree"):
        kbuild.suite_target("/boot/vmlinuz", "6.12.1")
    with pytest.raises(FscaleError, match="run make there first"):
        kbuild.tree_target(tmp_path)


def test_the_root_has_the_python_of_the_packages():
    assert rootfs.root_suite((3, 11)) == "bookworm"
    assert rootfs.root_suite((3, 13)) == "trixie"
    assert rootfs.root_suite((3, 12)) == "trixie"
    assert rootfs.root_suite((3, 14)) == "trixie"


class Release:
    def __init__(self, name, *requires, files=()):
        self.name, self.version, self.requires = name, "1", requires
        self.files = [Path(file) for file in files]


def test_packages_for_another_python_are_those_that_fscale_needs(tmp_path):
    there = [
        Release("fscale", "pydantic>=2", "scipy>=1", "Dask; extra == 'dask'"),
        Release("Pydantic", "typing_extensions (>=4)", "absent"),
        Release("typing-extensions"),
        Release("scipy", files=["scipy/a.py"]),
        Release("Dask"),
        Release("ubuntu-drivers-common"),
    ]
    argv = rootfs.pip_command(there, "3.13", tmp_path)
    assert [one for one in argv if "==" in one] == ["pydantic==1", "typing-extensions==1"]
    assert argv[argv.index("--python-version") + 1] == "3.13"
    # In a clone fscale is not a package.
    assert "ubuntu-drivers-common==1" in rootfs.pip_command(there[1:], "3.13", tmp_path)


def test_packages_that_pip_lacks_are_an_error_that_says_what_to_do(tmp_path, steps, monkeypatch):
    monkeypatch.setattr(rootfs.sys, "executable", "/bin/false")
    with pytest.raises(FscaleError, match=r"(?s)have Python 3\.13.*pipx.*3\.11 or 3\.13"):
        rootfs._fetch_packages([Release("numpy")], (3, 13), tmp_path, steps)
