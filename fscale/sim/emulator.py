# SPDX-License-Identifier: GPL-2.0-only
"""The command line of a simulated guest; docs/design/simulator.md gives the reasons for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fscale.model.errors import FscaleError
from fscale.sim.plan import Sockets
from fscale.vm.kernel import Kernel
from fscale.vm.place import QemuFiles, mapping
from fscale.vm.qemu import SANDBOX, Qemu, escaped
from fscale.vm.steps import need

# Callbacks that fire on a condition, and counters for each vCPU.
OLDEST = (9, 1)
# Without the hypervisor bit the kernel uses its queued spinlocks. Without a TSC the guest's time is
# the simulated one. la57, erms and fsrm are slow only under emulation. Kernels copy pages by rep
# movsq on CPUs that are known to do it fast, such as this family.
CPU = "max,tsc=off,hypervisor=off,la57=off,erms=off,fsrm=off,family=25,model=1,stepping=1"
KERNEL_LINE = (
    "console=ttyS0 quiet panic=-1 oops=panic nokaslr norandmaps mitigations=off nowatchdog "
    "nosoftlockup clocksource=acpi_pm lpj=8000000 audit=0 cpuidle.off=1 no_timer_check "
    "rcupdate.rcu_cpu_stall_suppress=1 rcupdate.rcu_expedited=1 slab_nomerge"
)


@dataclass(frozen=True)
class BootFiles(QemuFiles):
    """The files of a simulated boot. The guest sees `shared` only."""

    @property
    def shared(self) -> Path:
        """/host in the guest: the plan, and what it writes."""
        return self.base / "shared"

    @property
    def rules(self) -> Path:
        """The rules of objects that cost nothing (sim/rules.h); the guest waits for this file."""
        return self.base / "rules"

    @property
    def output(self) -> Path:
        """The output of the plugin."""
        return self.base / "windows.jsonl"


def check_version(emulator: Qemu) -> None:
    """FscaleError if this QEMU is too old for the plugin."""
    major, minor = (int(part) for part in emulator.version.split(".")[:2])
    if (major, minor) < OLDEST:
        raise FscaleError(
            f"QEMU {emulator.version} is too old for the simulator; install "
            f"{OLDEST[0]}.{OLDEST[1]} or later"
        )


def kernel_line(append: str) -> str:
    """The kernel's command line with the parameters that a user adds."""
    return f"{KERNEL_LINE} {append}".rstrip()


def command(
    emulator: Qemu,
    kernel: Kernel,
    initramfs: Path,
    plugin: Path,
    parameters: Mapping[str, int],
    slab: str | None,
    arranged: Sockets,
    seed: int,
    cpu: int,
    place: BootFiles,
    line: str = KERNEL_LINE,
) -> list[str]:
    """The whole command line, bound to the host's CPU `cpu`.

    `slab` is how slab objects are found (sim/slab.h), `line` the kernel's command line.
    """
    told = [
        f"out={escaped(place.output)}",
        f"rules={escaped(place.rules)}",
        *(f"{name}={value}" for name, value in parameters.items()),
    ]
    told += [f"slab={slab}"] if slab else []
    return [
        *(need("taskset", "util-linux"), "-c", str(cpu)),
        # A thread that is woken does not preempt its waker, which is about to sleep.
        *(need("chrt", "util-linux"), "--batch", "0"),
        *_preloaded(emulator, plugin),
        *SANDBOX,
        *("-machine", "q35,usb=off,vmport=off,sata=off,smbus=off,hpet=off"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-accel", "tcg,thread=multi,tb-size=512", "-cpu", CPU),
        *("-smp", arranged.option, "-m", f"{parameters['memory_mib']}M", "-seed", str(seed)),
        # Each boot starts at the same time of day.
        *("-rtc", "clock=vm,base=2026-01-01"),
        *("-kernel", str(kernel.image), "-initrd", str(initramfs), "-append", line),
        *("-serial", f"file:{place.console}"),
        *("-monitor", f"unix:{escaped(place.monitor)},server=on,wait=off"),
        "-fsdev",
        f"local,id=host,path={escaped(place.shared)},security_model={mapping(place.shared)},"
        "fmode=0644,dmode=0755,multidevs=remap",
        *("-device", "virtio-9p-pci,fsdev=host,mount_tag=host"),
        *("-plugin", ",".join([escaped(plugin), *told])),
    ]


def _preloaded(emulator: Qemu, plugin: Path) -> list[str]:
    """QEMU's first words; the plugin is also preloaded as a library, to control the clock."""
    first, *rest = emulator.argv
    if "ld-linux" in Path(first).name:
        return [first, "--preload", str(plugin), *rest]
    return [need("env", "coreutils"), f"LD_PRELOAD={plugin}", *emulator.argv]
