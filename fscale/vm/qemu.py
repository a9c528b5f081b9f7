# SPDX-License-Identifier: GPL-2.0-only
"""Chooses QEMU and its accelerator, and builds its command line."""

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fscale.model.errors import FscaleError, MissingTool
from fscale.model.paths import TOOL_PATH
from fscale.system.environment import of_children
from fscale.vm import rootfs
from fscale.vm.cache import cache_root, digest, entry
from fscale.vm.kernel import Kernel
from fscale.vm.memory import mebibytes
from fscale.vm.place import Share, mapping
from fscale.vm.steps import Steps, need

PROGRAM = "qemu-system-x86_64"
Accelerator = Literal["kvm", "tcg", "tcg-icount"]
# QEMU 7.2 of Debian 12 takes over three times as long for a fork and exec as 10.0 of Debian 13.
OLDEST = 10
# A counting guest's clock advances by so many powers of two nanoseconds an instruction.
ICOUNT_SHIFT = 1
INSTRUCTIONS_A_SECOND = 1_000_000_000 >> ICOUNT_SHIFT
# Sockets in the directory of a paused guest's controller, and the guest's device for the line.
QMP, LINE = "qmp", "line"
LINE_DEVICE = "/dev/ttyS2"
PROBE_SECONDS = 10.0

# Confinement: a guest that breaks out of the emulator cannot start programs or change its user.
SANDBOX = (
    "-sandbox",
    "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
)

# `no_timer_check`: the check of the 8254 fails on a busy host. Mitigations are off because their
# cost does not depend on the file system; the results record that. panic_print adds the stacks of
# all CPUs.
KERNEL_LINE = (
    "console=ttyS0 no_timer_check mitigations=off nokaslr panic=-1 oops=panic unknown_nmi_panic=1 "
    "panic_print=0x40 loglevel=6 systemd.unified_cgroup_hierarchy=1"
)


@dataclass(frozen=True)
class Qemu:
    """A QEMU that can be started: the first words of its command line."""

    argv: tuple[str, ...]
    modules: str | None
    version: str

    @property
    def digest(self) -> str:
        """SHA-256 of the emulator's program."""
        program = next(word for word in self.argv if Path(word).name == PROGRAM)
        with Path(program).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def environment(self) -> dict[str, str]:
        """The environment in which it finds its accelerators and device modules."""
        extra = {"QEMU_MODULE_DIR": self.modules} if self.modules else {}
        return of_children(**extra)


@dataclass(frozen=True)
class Guest:
    """A guest as the user asked for it."""

    kernel: Kernel
    smp: int
    memory: str = "4G"
    accelerator: Accelerator = "tcg"
    append: str = ""
    images: Mapping[str, Path] = field(default_factory=dict)
    """squashfs images by serial number, beside the kernel's modules"""

    def label(self) -> str:
        """A label that says how to interpret figures from this guest."""
        return {
            "kvm": "virtualised",
            "tcg": "emulated: ratios only",
            "tcg-icount": "emulated, deterministic: instruction cost only, no scaling",
        }[self.accelerator]


def _version(argv: list[str], env: dict[str, str]) -> str | None:
    """The version, such as 10.0.13; None if QEMU was built without its sandbox."""
    ask = [*argv, *SANDBOX, "--version"]
    shown = subprocess.run(ask, capture_output=True, text=True, env=env, check=False)
    if shown.returncode != 0:
        return None
    version = re.search(r"version (\d+\.\d+\.\d+)", shown.stdout)
    if not version:
        raise FscaleError(
            f"cannot find a version in the output of {argv[0]} --version: {shown.stdout.strip()}"
        )
    return version[1]


def find(steps: Steps) -> Qemu:
    """The host's QEMU if it is new enough and can be confined; else Debian 13's from the cache."""
    host = shutil.which(PROGRAM, path=TOOL_PATH)
    if host:
        version = _version([host], of_children())
        if version and int(version.split(".")[0]) >= OLDEST:
            return Qemu((host,), None, version)

    def build(directory: Path) -> None:
        steps.note(
            "unpacking QEMU of Debian trixie, because the host's is missing, too old or cannot be "
            "confined"
        )
        rootfs.bootstrap("trixie", "extract", ("qemu-system-x86",), directory / "tree", steps)

    tree = entry("qemu", digest("trixie", "qemu-system-x86", 1), build) / "tree"
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    argv = [
        str(tree / "usr/lib64/ld-linux-x86-64.so.2"),
        *("--library-path", str(libraries)),
        str(tree / "usr/bin" / PROGRAM),
        *("-L", str(tree / "usr/share/qemu")),
        *("-L", str(tree / "usr/share/seabios")),
    ]
    modules = str(libraries / "qemu")
    unpacked = _version(argv[:4], of_children(QEMU_MODULE_DIR=modules))
    if not unpacked:
        raise FscaleError(
            f"{argv[3]} does not start; delete {tree.parent}, so that it is unpacked again"
        )
    return Qemu(tuple(argv), modules, unpacked)


def machine_options(guest: Guest) -> list[str]:
    """The options that a probe and a run share: CPU, memory, kernel."""
    # Without features that are slow under emulation: a fifth level of page tables at each TLB miss,
    # and "fast" string moves, which TCG does byte by byte.
    cpu = ("-cpu", "max,la57=off,erms=off,fsrm=off")
    accelerator = {
        "kvm": ["-accel", "kvm", "-cpu", "host"],
        "tcg": ["-accel", "tcg,thread=multi,tb-size=512", *cpu],
        "tcg-icount": [
            *("-accel", "tcg,thread=single,tb-size=512", *cpu),
            *("-icount", f"shift={ICOUNT_SHIFT},sleep=off"),
        ],
    }[guest.accelerator]
    return [
        *("-machine", "q35,usb=off,vmport=off,sata=off,smbus=off"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *accelerator,
        *("-smp", str(guest.smp), "-m", f"{mebibytes(guest.memory)}M"),
        *("-kernel", str(guest.kernel.image), "-initrd", str(guest.kernel.initramfs)),
    ]


def command(
    qemu: Qemu,
    guest: Guest,
    *,
    images: dict[str, Path],
    shares: Sequence[Share],
    console: Path,
    monitor: Path,
    held: Path | None = None,
) -> list[str]:
    """The whole command line.

    `images` are squashfs images by serial number. The kernel's console goes to the file `console`,
    the job's output to QEMU's standard output. In the directory `held` are two sockets, of QEMU's
    machine protocol (QMP) and of the line to the job.
    """
    argv = [*qemu.argv, *SANDBOX, *machine_options(guest)]
    argv += ["-append", f"{KERNEL_LINE} {guest.append}".rstrip()]
    # QEMU must write each line at once, so that the last lines of a panic are not lost.
    argv += ["-serial", f"file:{console}", "-serial", "stdio"]
    argv += ["-monitor", f"unix:{escaped(monitor)},server=on,wait=off"]
    if held:
        argv += ["-qmp", f"unix:{escaped(held / QMP)},server=on,wait=off"]
        argv += [
            "-chardev",
            f"socket,id=line,path={escaped(held / LINE)},server=on,wait=off",
            # The port has its own interrupt, because not every kernel shares that of a PC's port.
            *("-device", "isa-serial,chardev=line,index=2,irq=5"),
        ]
    for serial, path in images.items():
        argv += [
            *("-drive", f"file={escaped(path)},format=raw,if=none,id={serial},readonly=on"),
            *("-device", f"virtio-blk-pci,drive={serial},serial={serial}"),
        ]
    for share in shares:
        # Other users of the host read the results; 9p would make them private.
        access = "fmode=0644,dmode=0755" if share.writable else "readonly=on"
        argv += [
            "-fsdev",
            f"local,id={share.tag},path={escaped(share.path)},"
            f"security_model={mapping(share.path)},{access},multidevs=remap",
            *("-device", f"virtio-9p-pci,fsdev={share.tag},mount_tag={share.tag}"),
        ]
    return argv


def escaped(path: Path) -> str:
    """A path as a value of one of QEMU's options, where a comma ends a value."""
    return str(path).replace(",", ",,")


def protected(argv: list[str]) -> list[str]:
    """The command, wrapped so that it is killed when this process dies, even by SIGKILL."""
    return [need("setpriv", "util-linux"), "--pdeathsig", "KILL", "--", *argv]


def kvm_works(qemu: Qemu, kernel: Kernel, steps: Steps) -> bool:
    """Whether this kernel boots under KVM; tested once per host kernel, QEMU and guest kernel.

    The existence of /dev/kvm is not enough: nested virtualisation may have it and still fail to
    boot a stock kernel.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    known = cache_root() / "kvm" / digest(os.uname().release, qemu.version, str(kernel.image))
    if known.exists():
        return known.read_text() == "yes"
    steps.note(f"trying KVM, once (at most {PROBE_SECONDS:.0f} s)")
    guest = Guest(kernel, smp=2, memory="512M", accelerator="kvm")
    argv = [*qemu.argv, *SANDBOX, *machine_options(guest), "-serial", "stdio"]
    argv += ["-append", f"{KERNEL_LINE} fscale.probe"]
    started = time.monotonic()
    try:
        tried = subprocess.run(
            protected(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            env=qemu.environment(),
            check=False,
        )
        works = b"fscale-guest: alive" in tried.stdout
    except subprocess.TimeoutExpired:
        works = False
    steps.note(
        f"KVM {'works' if works else 'does not boot this kernel'} "
        f"({time.monotonic() - started:.1f} s)"
    )
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text("yes" if works else "no")
    return works


def accelerator(
    wanted: str, deterministic: bool, qemu: Qemu, kernel: Kernel, steps: Steps
) -> Accelerator:
    """The accelerator to use: `wanted` is auto, kvm or tcg; `deterministic` means tcg-icount."""
    if deterministic:
        if wanted == "kvm":
            raise FscaleError(
                "--deterministic counts instructions, which KVM cannot; leave --accel kvm out"
            )
        return "tcg-icount"
    if wanted == "tcg" or (wanted == "auto" and not kvm_works(qemu, kernel, steps)):
        return "tcg"
    if wanted in ("auto", "kvm"):
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            raise MissingTool("/dev/kvm is missing or not accessible to this user; use --accel tcg")
        return "kvm"
    raise FscaleError(f"unknown accelerator {wanted}; choose auto, kvm or tcg")
