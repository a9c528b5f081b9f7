# SPDX-License-Identifier: GPL-2.0-only
"""A machine that the stub of ssh reaches, and what stands for `python3` on it.

In the machine's directory: `panics`, `hangs`: what the next kernels do; `silent`: the seconds of a
keeper's patience; `fake`: its fscale makes up cells (farm_program.py); `answer`: a task is
answered with these bytes; `python`: the answer to the question for its version.
"""

import contextlib
import hashlib
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent


_OF_PROC = """
for word; do
    case $word in
    /proc/cmdline) set -- "$@" "$SSH_STUB/boot/cmdline" ;;
    /boot/config-*) set -- "$@" "$SSH_STUB/config" ;;
    /proc/stat) set -- "$@" "$SSH_STUB/boot/stat" ;;
    /proc/sys/kernel/random/boot_id) set -- "$@" "$SSH_STUB/boot/id" ;;
    *) set -- "$@" "$word" ;;
    esac
    shift
done
exec PROGRAM "$@"
"""
_COUNT = "echo $(($(cat $SSH_STUB/boot/id) + 1)) >$SSH_STUB/boot/id\n"
_OWN = """
/bin/cat $SSH_STUB/boot/own >$SSH_STUB/boot/kernel
echo "root=/dev/sda1 quiet" >$SSH_STUB/boot/cmdline
"""
_BOOT = f"""{_COUNT}
touch $SSH_STUB/cut
[ -e $SSH_STUB/hangs ] || (/bin/sleep 1; rm $SSH_STUB/cut) >/dev/null 2>&1 </dev/null &
"""
# What is loaded is told by the initramfs, whose content is the release.
_KEXEC = (
    """
if [ "$1" = -l ]; then
    cat "${3#--initrd=}" >$SSH_STUB/boot/next
    echo "${4#--command-line=}" >$SSH_STUB/boot/next-cmdline
    echo "$2 $4" >>$SSH_STUB/loaded
elif [ "$1" = -u ]; then
    rm -f $SSH_STUB/boot/next
else
    if [ -e $SSH_STUB/panics ]; then
        """
    + _OWN
    + """
    else
        echo "$(cat $SSH_STUB/boot/next) #2 mine" >$SSH_STUB/boot/kernel
        cp $SSH_STUB/boot/next-cmdline $SSH_STUB/boot/cmdline
    fi
    rm $SSH_STUB/boot/next
    """
    + _BOOT
    + """
fi
"""
)
_MKINITRAMFS = """
[ -e $SSH_STUB/config ] || { echo "E: gzip compression not supported by kernel" >&2; exit 1; }
echo "$5" >"$4"
echo "$5" >>$SSH_STUB/initramfs
"""
# What would be written to the machine that runs the tests.
_INSTALL = """
case $4 in
/boot/config-*) cat >$SSH_STUB/config ;;
*) shift 4; cat "$@" >$SSH_STUB/units ;;
esac
"""
_SYSTEMCTL = (
    """
[ "$1" = kexec ] && exec kexec -e
[ "$1" = reboot ] && [ -e $SSH_STUB/boot/next ] && exec kexec -e
[ "$1" = reboot ] || { echo "$*" >>$SSH_STUB/systemctl; exit; }
/bin/echo "there is no login manager" >&2
[ $? -lt 128 ] || kill -PIPE $$
"""
    + _OWN
    + """
echo rebooted >>$SSH_STUB/rebooted
"""
    + _BOOT
)


class Machine:
    """The programs and the files of the machine."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.place = place
        self.bin = place / "bin"
        here = f'exec {sys.executable} -P {HERE}/%s "$@"\n'
        _program(place / "here/ssh", here % "ssh_stub.py")
        _program(self.bin / "mktemp", f'{shutil.which("mktemp")} "$@" | tee -a "$SSH_STUB/made"')
        _program(self.bin / "python3", here % "ssh_machine.py")

    def use(self, monkeypatch: "pytest.MonkeyPatch") -> None:  # noqa: F821
        """Let ssh of this process be the stub."""
        monkeypatch.setenv("SSH_STUB", str(self.place))
        monkeypatch.setenv("FARM_TEST", str(self.place))
        path = f"{self.place / 'here'}{os.pathsep}{os.environ['PATH']}"
        monkeypatch.setenv("PATH", path)

    def program(self, name: str, body: str) -> None:
        """Give the machine a program."""
        _program(self.bin / name, body)

    def tell(self, name: str, content: bytes | str = b"") -> Path:
        """Write one of the files that say what happens."""
        path = self.place / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def boots(self) -> None:
        """Let the machine boot: `boot/kernel`, `boot/cmdline` and `boot/id` say what runs.

        `boot/own` is the kernel that its boot loader starts.
        """
        for name in ("kernel", "own"):
            self.tell(f"boot/{name}", "6.1.0-own #1 Debian\n")
        self.tell("boot/cmdline", "root=/dev/sda1 quiet\n")
        self.tell("boot/id", "1\n")
        self.program(
            "uname", '[ "$1" = -rv ] && exec cat "$SSH_STUB/boot/kernel"; exec /bin/uname "$@"'
        )
        for name in ("cat", "sed"):
            real = shutil.which(name)
            self.program(name, _OF_PROC.replace("PROGRAM", str(real)))
        self.program("mkinitramfs", _MKINITRAMFS)
        self.program("install", _INSTALL)
        self.program("kexec", _KEXEC)
        self.program("systemctl", _SYSTEMCTL)
        self.tell("boot/stat", "cpu  1 2 3 4\n")
        self.program("sleep", 'echo "$*" >>$SSH_STUB/slept')
        self.tell(
            "reset", f"SSH_STUB={self.place}{_OWN}{_COUNT}rm -f $SSH_STUB/hangs $SSH_STUB/cut"
        )

    def crash(self) -> None:
        """Let the running kernel crash: its processes end, and the machine's own kernel boots."""
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for line in (self.place / "processes").read_text().split():
                # Another process may have the number of one that ended.
                with contextlib.suppress(OSError):
                    if str(self.place).encode() in Path("/proc", line, "environ").read_bytes():
                        os.killpg(int(line), number)
            self.tell("cut")
            time.sleep(1)
        self.reset()

    def reset(self) -> None:
        """Let the machine's own kernel boot."""
        subprocess.run(["sh", self.place / "reset"], check=True)

    @property
    def directories(self) -> list[Path]:
        """The directories that were made there and are left."""
        path = self.place / "made"
        made = path.read_text().splitlines() if path.exists() else []
        return [path for path in map(Path, made) if path.exists()]

    @property
    def log(self) -> list[str]:
        """What fscale did there."""
        path = self.place / "log"
        return path.read_text().splitlines() if path.exists() else []


def until(holds: Callable[[], bool]) -> None:
    """Wait for at most five minutes."""
    end = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def tag(place: Path) -> str:
    """What the names of stale directories of this machine begin with, of nine characters."""
    return hashlib.sha256(bytes(place)).hexdigest()[:9]


def _program(path: Path, body: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def main() -> None:
    """Run what `python3` is to run there."""
    place = Path(os.environ["SSH_STUB"])
    words = [word for word in sys.argv[1:] if word != "-P"]
    if words[0] == "-c":
        if (place / "python").exists():
            print((place / "python").read_text())
        else:
            exec(words[1])
        return
    module, arguments = words[1], words[2:]
    if module == "fscale.farm.errand" and (place / "answer").exists():
        sys.stdin.buffer.readline()
        sys.stdout.buffer.write((place / "answer").read_bytes())
        return
    sys.path.append(str(HERE.parents[1]))
    from fscale.model import paths  # noqa: PLC0415 - that of the machine

    paths.state_dir = lambda: place / "state"  # type: ignore[assignment]
    paths.lasting_dir = lambda: place / "lasting"  # type: ignore[assignment]
    if module == "fscale.farm.keeper":
        from fscale.farm import keeper  # noqa: PLC0415

        # Machines of other tests have theirs in the same /var/tmp.
        keeper.VISITS = f"fscale.{tag(place)}*"
        if (place / "silent").exists():
            keeper.SILENT_SECONDS = float((place / "silent").read_text())
        sys.argv = [module, *arguments]
        keeper.main()
        return
    if module == "fscale" and (place / "fake").exists():
        sys.argv = [str(HERE / "farm_program.py"), *arguments]
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
