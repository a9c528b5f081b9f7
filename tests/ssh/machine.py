# SPDX-License-Identifier: GPL-2.0-only
"""A Debian in QEMU that stands for a test machine: systemd, OpenSSH, kexec; ssh on loopback.

A reset boots its own kernel again, as QEMU starts it, and not the one that kexec started.
"""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from fscale.vm import qemu
from fscale.vm.cache import digest, entry
from fscale.vm.rootfs import bootstrap, root_suite
from fscale.vm.steps import Steps

PACKAGES = (
    *("systemd-sysv", "openssh-server", "kexec-tools", "initramfs-tools"),
    "linux-image-cloud-amd64",
    *("python3", "sudo", "kmod", "udev", "iproute2", "e2fsprogs", "libjansson4", "liburing2"),
)
# Under emulation they take more of a boot than all that is needed.
MASKED = (
    *("e2scrub_reap.service", "getty.target", "systemd-logind.service"),
    *("systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount"),
    *("systemd-networkd-wait-online.service", "systemd-journal-flush.service"),
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer"),
    "e2scrub_all.timer",
)
NETWORK = "[Match]\nName=e*\n[Network]\nDHCP=yes\n"
FSTAB = "/dev/vda / ext4 defaults 0 1\n"
BOOT_SECONDS = 600


def image(steps: Steps) -> Path:
    """The directory with the disk, the kernel, the initramfs and the user's key; made once."""

    def build(directory: Path) -> None:
        tree = directory / "tree"
        bootstrap(root_suite(), "minbase", PACKAGES, tree, steps)
        for name, text in (
            ("etc/systemd/network/all.network", NETWORK),
            ("etc/fstab", FSTAB),
            ("etc/hostname", "testbox\n"),
            ("etc/sudoers.d/tester", "tester ALL=(ALL) NOPASSWD:ALL\n"),
            ("etc/initramfs-tools/conf.d/testbox", "MODULES=list\n"),
            ("etc/initramfs-tools/modules", "virtio_pci\nvirtio_blk\next4\n"),
        ):
            (tree / name).write_text(text)
        steps.run(["chroot", str(tree), "systemctl", "enable", "systemd-networkd", "ssh"], "units")
        steps.run(["chroot", str(tree), "systemctl", "mask", *MASKED], "masking units")
        steps.run(["chroot", str(tree), "useradd", "-m", "-s", "/bin/sh", "tester"], "the user")
        steps.run(["chroot", str(tree), "update-initramfs", "-u"], "the small initramfs")
        for key in ("user", "host"):
            generate = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / key)]
            steps.run(generate, f"the key of the {key}")
        for home in ("root", "home/tester"):
            (tree / home / ".ssh").mkdir(mode=0o700, exist_ok=True)
            shutil.copy(directory / "user.pub", tree / home / ".ssh/authorized_keys")
        steps.run(["chroot", str(tree), "chown", "-R", "tester:", "/home/tester"], "its home")
        for name in ("host", "host.pub"):
            suffix = name.removeprefix("host")
            shutil.copy(directory / name, tree / f"etc/ssh/ssh_host_ed25519_key{suffix}")
        for name in ("vmlinuz", "initrd.img"):
            (found,) = tree.glob(f"boot/{name}-*")
            shutil.copy(found, directory / name)
        disk = ["mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(directory / "disk"), "6G"]
        steps.run(disk, "making the disk")
        shutil.rmtree(tree)

    return entry("ssh-machine", digest(PACKAGES, MASKED, root_suite(), 2), build)


@contextlib.contextmanager
def running(steps: Steps, place: Path, port: int, accelerator: str = "tcg") -> Iterator[Path]:
    """Run the machine; the configuration of ssh that names it `testbox`.

    `testbox-user` is an ordinary user behind a jump host, which is the machine itself;
    `testbox-unknown` has a host key that nobody confirmed.
    """
    made = image(steps)
    disk = place / "disk"
    subprocess.run(["cp", "--sparse=always", made / "disk", disk], check=True)
    key = place / "user"
    shutil.copy(made / "user", key)
    key.chmod(0o600)
    kind, host_key = (made / "host.pub").read_text().split()[:2]
    (place / "known").write_text(f"[127.0.0.1]:{port},127.0.0.1 {kind} {host_key}\n")
    config = place / "config"
    config.write_text(
        "Host testbox-user\nUser tester\nProxyJump testbox\nPort 22\n"
        "Host testbox-unknown\nUserKnownHostsFile /dev/null\n"
        f"Host testbox*\nHostName 127.0.0.1\nPort {port}\nUser root\nIdentityFile {key}\n"
        f"IdentitiesOnly yes\nUserKnownHostsFile {place}/known\n"
    )
    emulator = qemu.find(steps)
    argv = [
        *(*emulator.argv, "-accel", accelerator, "-smp", "2", "-m", "2G", "-nographic"),
        *("-kernel", str(made / "vmlinuz"), "-initrd", str(made / "initrd.img")),
        *("-append", "root=/dev/vda rw console=ttyS0"),
        *("-drive", f"file={disk},format=raw,if=virtio"),
        *("-nic", f"user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-monitor", f"unix:{place}/monitor,server=on,wait=off"),
        *("-serial", f"file:{place}/console"),
    ]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as process:
        try:
            _await_ssh(config, process)
            yield config
        finally:
            process.terminate()


def _await_ssh(config: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + BOOT_SECONDS
    argv = ["ssh", "-F", str(config), "-oBatchMode=yes", "-oConnectTimeout=5", "testbox", "true"]
    while subprocess.run(argv, check=False, capture_output=True).returncode:
        if process.poll() is not None:
            raise ChildProcessError("QEMU ended")
        if time.monotonic() > end:
            raise TimeoutError(f"testbox does not answer within {BOOT_SECONDS} s")
        time.sleep(2)


def steps() -> Steps:
    """Steps that are printed."""
    return Steps(Console(stderr=True))
