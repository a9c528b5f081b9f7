# SPDX-License-Identifier: GPL-2.0-only
"""The command line of a simulated guest, and which files its initramfs gets."""

import io
import shutil
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from fscale.model import catalogue
from fscale.model.errors import FscaleError
from fscale.model.paths import TOOL_PATH
from fscale.sim import emulator, image, machine
from fscale.sim.emulator import BootFiles
from fscale.sim.machine import Method
from fscale.sim.plan import sockets
from fscale.vm.kernel import Kernel
from fscale.vm.module_build import Parts
from fscale.vm.qemu import Qemu
from fscale.vm.steps import Steps

PLUGIN = Path("/build/fscale-sim.so")
UNPACKED = Qemu(("/t/ld-linux-x86-64.so.2", "--library-path", "/t/lib", "/t/qemu"), None, "10.0.1")
HOST = Qemu(("/usr/bin/qemu-system-x86_64",), None, "9.1.0")


def command(qemu: Qemu, tmp_path: Path, slab: str | None = None) -> list[str]:
    paper = machine.load("paper")
    kernel = Kernel("k", "6.1", Path("/k/vmlinux"), Path("/k/initramfs"), None)
    told = machine.parameters(paper, Method(quantum=50), 16, 1024)
    place = BootFiles(tmp_path)
    place.shared.mkdir()
    return emulator.command(
        qemu, kernel, Path("/i.cpio"), PLUGIN, told, slab, sockets(paper, 16), 7, 1, place
    )


def after(argv: list[str], option: str) -> str:
    return argv[argv.index(option) + 1]


def test_the_plugin_is_loaded_twice_under_the_same_path(tmp_path: Path) -> None:
    argv = command(UNPACKED, tmp_path)
    start = argv.index("/t/ld-linux-x86-64.so.2")
    assert argv[start : start + 3] == ["/t/ld-linux-x86-64.so.2", "--preload", str(PLUGIN)]
    assert argv[start + 3 : start + 6] == ["--library-path", "/t/lib", "/t/qemu"]
    assert after(argv, "-plugin").split(",")[0] == str(PLUGIN)


def test_the_plugin_is_told_where_slabs_are(tmp_path: Path) -> None:
    argv = command(UNPACKED, tmp_path, slab="1:2:3")
    assert "slab=1:2:3" in after(argv, "-plugin").split(",")
    (tmp_path / "other").mkdir()
    assert "slab" not in after(command(UNPACKED, tmp_path / "other"), "-plugin")


def test_a_host_qemu_gets_it_by_its_environment(tmp_path: Path) -> None:
    argv = command(HOST, tmp_path)
    assert argv[argv.index(HOST.argv[0]) - 1] == f"LD_PRELOAD={PLUGIN}"


def test_a_comma_in_a_path_ends_no_option_of_qemu(tmp_path: Path) -> None:
    (tmp_path / "a,b").mkdir()
    argv = command(HOST, tmp_path / "a,b")
    place = f"{tmp_path}/a,,b"
    assert f"path={place}/shared,security_model" in after(argv, "-fsdev")
    assert after(argv, "-monitor").startswith(f"unix:{place}/")
    assert f",out={place}/windows.jsonl,rules={place}/rules," in after(argv, "-plugin")


def test_parameters_of_the_user_come_last_on_the_kernel_line() -> None:
    assert emulator.kernel_line("apparmor=0 nosmt").split()[-2:] == ["apparmor=0", "nosmt"]
    assert emulator.kernel_line("") == emulator.KERNEL_LINE


def test_the_guest_is_what_was_asked_for(tmp_path: Path) -> None:
    argv = command(UNPACKED, tmp_path)
    assert argv[argv.index("-c") + 1] == "1"  # one CPU of the host for all threads
    assert after(argv, "-smp").startswith("16,sockets=2,cores=10")
    assert after(argv, "-m") == "1024M"
    assert after(argv, "-seed") == "7"
    told = after(argv, "-plugin").split(",")
    assert f"out={tmp_path}/windows.jsonl" in told
    assert {"vcpus=16", "quantum=50", f"rules={tmp_path}/rules"} <= set(told)
    line = after(argv, "-append")
    assert "nokaslr" in line
    assert "clocksource=acpi_pm" in line


@pytest.mark.parametrize("version", ["9.0.2", "7.2.0"])
def test_an_old_qemu_is_refused(version: str) -> None:
    with pytest.raises(FscaleError, match="too old"):
        emulator.check_version(Qemu(("q",), None, version))
    emulator.check_version(HOST)


def test_the_image_has_programs_with_their_libraries_and_modules_under_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image.paths, "BENCH", Path("/bin/sh"))
    module = tmp_path / "lanefs.ko"
    module.touch()
    parts = Parts((module,), {"bin/mkfs.ext4": Path("/bin/ls")})
    files = image._files([catalogue.load_filesystem(n) for n in ("tmpfs", "ext4")], parts)
    assert files["bin/fscale-bench"] == Path("/bin/sh")
    assert files["bin/mkfs.ext4"] == Path("/bin/ls")  # what is under test comes first
    assert files["modules/under-test/lanefs.ko"] == module
    assert any(name.endswith("/libc.so.6") for name in files)
    assert any("ld-linux" in name for name in files)
    assert not any(name.startswith("/") for name in files)


def test_what_a_module_under_test_wants_is_loaded_before_it(tmp_path: Path) -> None:
    source, module = tmp_path / "m.c", tmp_path / "m.ko"
    place = '__attribute__((section(".modinfo"), used)) static const char'
    told = ["depends=jbd2,mbcache", "softdep=pre: crc32c sha256 post: late"]
    source.write_text("".join(f'{place} m{n}[] = "{text}";' for n, text in enumerate(told)))
    subprocess.run(["cc", "-c", "-o", module, source], check=True)
    assert image._needs(module) == ["jbd2", "mbcache", "crc32c", "sha256"]


RELEASE = "6.12.1"
TOOLS = ("mksquashfs", "unsquashfs", "busybox", "cpio")
MISSING = [tool for tool in TOOLS if shutil.which(tool, path=TOOL_PATH) is None]
needs_tools = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """A kernel with overlayfs and a file system as modules, and without FUSE."""
    modules = tmp_path / "lib" / RELEASE
    (modules / "kernel").mkdir(parents=True)
    names = ("overlay", "ext4", "exportfs")
    for name in names:
        (modules / "kernel" / f"{name}.ko").write_bytes(name.encode())
    dep = ["kernel/overlay.ko: kernel/exportfs.ko", "kernel/ext4.ko:", "kernel/exportfs.ko:"]
    (modules / "modules.dep").write_text("".join(f"{line}\n" for line in dep))
    (modules / "modules.builtin").write_text("".join(f"k/{name}.ko\n" for name in image.TRANSPORT))
    for table in ("softdep", "alias"):
        (modules / f"modules.{table}").touch()
    archive = tmp_path / "modules.squashfs"
    subprocess.run(["mksquashfs", modules.parent, archive, "-quiet", "-no-progress"], check=True)
    return Kernel("made up", RELEASE, tmp_path / "vmlinux", tmp_path / "initramfs", archive)


@needs_tools
@pytest.mark.parametrize(
    ("mounts", "loaded"),
    [
        ((), []),
        (("overlay",), ["exportfs.ko", "overlay.ko"]),
        # The workload is skipped in the guest, and the others go on.
        (("fuse", "overlay"), ["exportfs.ko", "overlay.ko"]),
    ],
)
def test_the_image_has_the_modules_that_its_workloads_mount(
    kernel: Kernel,
    mounts: tuple[str, ...],
    loaded: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(image.paths, "BENCH", Path("/bin/sh"))
    tmpfs = {"tmpfs": catalogue.load_filesystem("tmpfs")}
    steps = Steps(Console(file=io.StringIO()))
    archive = image.build(kernel, tmpfs, [], mounts, Parts(), steps)
    with archive.open("rb") as file:
        subprocess.run(["cpio", "-idm", "--quiet"], cwd=tmp_path, stdin=file, check=True)
    assert (tmp_path / "modules" / "order").read_text().split() == loaded
    assert {path.name for path in (tmp_path / "modules").glob("*.ko")} == {*loaded}


@needs_tools
def test_a_kernel_without_the_file_system_under_test_is_refused(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(image.paths, "BENCH", Path("/bin/sh"))
    xfs = {"xfs": catalogue.load_filesystem("xfs").model_copy(update={"mkfs": []})}
    with pytest.raises(FscaleError, match="no xfs"):
        image.build(kernel, xfs, [], (), Parts(), Steps(Console(file=io.StringIO())))
