# SPDX-License-Identifier: GPL-2.0-only
"""Real guests. One short test belongs to `make test`, the others to `make test-guest`."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fscale.model.paths import AGING, BENCH, ROOT, TOOL_PATH
from fscale.vm import guest as guests
from fscale.vm import qemu
from fscale.vm.boot import start
from fscale.vm.place import Job
from fscale.vm.request import GuestRequest
from tests.unit.vm.test_module_build import compiled

TOOLS = ("mmdebstrap", "mksquashfs", "busybox", "cpio", "depmod")
MISSING = [tool for tool in TOOLS if shutil.which(tool, path=TOOL_PATH) is None]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    # A busy machine emulates slowly, and the first test sets up the cache.
    pytest.mark.timeout(900),
]

MARK = ("FSCALE_TEST_OF_GUESTS", str(os.getpid()))


def fscale_vm(*arguments: str, timeout: float = 800) -> subprocess.CompletedProcess[str]:
    """Run `fscale vm` as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "fscale", "vm", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the commands of these tests start bears a mark: others may run guests meanwhile."""
    monkeypatch.setenv(*MARK)


def qemu_processes() -> list[int]:
    """The QEMU processes that a command of these tests started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            ours = "=".join(MARK).encode() in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if ours and any(b"qemu-system" in word for word in words[:4]):
            found.append(int(entry.name))
    return found


@pytest.mark.live
def test_a_suite_runs_in_a_guest_on_file_systems_that_the_host_may_lack(tmp_path):
    """One is a module of the guest's kernel, the others are built for it from their sources."""
    if not BENCH.exists():
        pytest.skip("not built: make build")
    output = tmp_path / "run"
    done = fscale_vm(
        *("run", "smoke", "--kernel", "bookworm", "--smp", "2", "--memory", "2G"),
        *("--output", str(output), "--accel", "tcg"),
        *("--fs", "f2fs,lanefs,lanefs_single", "--workload", "MWUL", "--cores", "2"),
        *("--duration", "0.2"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = json.loads((output / "run.json").read_text())
    assert run["state"] == "complete"
    assert run["machine"]["guest"]["accelerator"] == "tcg"
    assert run["machine"]["guest"]["label"] == "emulated: ratios only"
    assert run["machine"]["kernel"].startswith("6.1.")
    cells = [json.loads(path.read_text()) for path in (output / "cells").glob("*.json")]
    assert {cell["key"]["filesystem"] for cell in cells} == {"f2fs", "lanefs", "lanefs_single"}
    for cell in cells:
        assert (cell["status"], cell["reason"]) == ("ok", None)
        assert cell["ops"] > 0
        if cell["key"]["filesystem"] != "f2fs":
            assert any(command["argv"][0] == "fsck.lanefs" for command in cell["commands"])
    assert (output / "guest" / "console.log").stat().st_size > 0
    assert run["machine"]["guest"]["stood_still"] <= guests.BOOTS
    for path in output.rglob("*"):
        access = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
        assert path.stat().st_mode & access == access, f"{path} is the owner's alone"


HOSTILE = """
echo '{{}}' >/results/run.json
for name in guest cells profiles; do ln -s {outside} /results/$name; done
for name in crash.json report.html; do ln -s {outside}/outcome.json /results/$name; done
mknod /results/disk b {major} {minor}
mkfifo /results/fifo
for share in control state; do
	for name in status console.log qemu.log outcome.json; do
		ln -sf {outside}/$name /$share/$name
	done
done
echo 'echo once more' >/control/job && echo the job can be written
stat -c '%F' /results/guest /results/disk /results/fifo
"""


def hostile(tmp_path: Path) -> tuple[guests.GuestOutcome, Path]:
    """Boot a guest that leaves links to the host's files in each share; its end, and the results.

    None of them is followed.
    """
    outside = tmp_path / "outside"
    outside.mkdir()
    texts = {name: f"the host's {name}\n" for name in ("console.log", "qemu.log", "outcome.json")}
    texts["status"] = "0\n"
    for name, text in texts.items():
        (outside / name).write_text(text)
    disk = tmp_path.stat().st_dev
    script = HOSTILE.format(outside=outside, major=os.major(disk), minor=os.minor(disk))
    results = tmp_path / "results"
    job = Job(["sh", "-c", script], output=results)
    outcome = start(job, GuestRequest(kernel="bookworm", accel="tcg", smp=2, memory="1G"))
    assert outcome is not None
    assert {path.name: path.read_text() for path in outside.iterdir()} == texts
    return outcome, results


def check_hostile(outcome: guests.GuestOutcome, results: Path, said: str) -> None:
    """The guest saw its links and devices; the host has plain files, and its record."""
    assert said.split("\n")[-4:] == ["symbolic link", "block special file", "fifo", ""]
    assert "the job can be written" not in said
    kinds = {stat.S_IFMT(path.lstat().st_mode) for path in results.rglob("*")}
    assert kinds == {stat.S_IFREG, stat.S_IFDIR}
    # A link in the place of the status is none.
    assert (outcome.end, outcome.returncode) == ("died", None)
    record = json.loads((results / "guest" / "outcome.json").read_text())
    assert record["end"] == "died"
    assert "the host's" not in (results / "guest" / "qemu.log").read_text()


def test_a_hostile_guest_reaches_nothing_of_the_host(tmp_path, capfd):
    outcome, results = hostile(tmp_path)
    check_hostile(outcome, results, capfd.readouterr().out)


@pytest.mark.guest
def test_nor_where_the_file_system_has_no_attributes_for_users(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(qemu, "mapping", lambda _: "mapped-file")
    outcome, results = hostile(tmp_path)
    check_hostile(outcome, results, capfd.readouterr().out)


@pytest.mark.live
@pytest.mark.guest
def test_a_run_in_a_guest_is_continued(tmp_path):
    output = tmp_path / "run"
    argv = (
        *("run", "smoke", "--kernel", "trixie", "--smp", "2", "--memory", "2G", "--accel", "tcg"),
        *("--output", str(output), "--fs", "tmpfs", "--workload", "MWCL,MRPL", "--cores", "1"),
        *("--duration", "0.2"),
    )
    assert fscale_vm(*argv).returncode == 0
    kept, again = sorted((output / "cells").glob("*.json"))
    before = kept.stat().st_mtime_ns
    again.unlink()
    done = fscale_vm(*argv)
    assert done.returncode == 0, done.stdout + done.stderr
    assert again.exists()
    assert kept.stat().st_mtime_ns == before


@pytest.mark.guest
def test_a_kernel_that_stands_still_is_booted_a_bounded_number_of_times(tmp_path, monkeypatch):
    monkeypatch.setattr(guests, "BOOT_SECONDS", 60.0)
    # Its first process reads the console, on which nobody writes.
    options = GuestRequest(
        kernel="bookworm", accel="tcg", smp=4, append="rdinit=/bin/busybox -- cat"
    )
    outcome = start(Job(["true"]), options)
    assert outcome is not None
    assert (outcome.end, outcome.stood_still) == ("still", guests.BOOTS - 1)
    assert "Kernel panic - not syncing: NMI" in (outcome.report or "")


@pytest.mark.guest
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["sh", "-c", "echo c >/proc/sysrq-trigger"], "kernel panicked: Kernel panic"),
        (["python3", "-c", "x = [bytearray(50 << 20) for _ in range(99)]"], "ran out of memory"),
    ],
)
def test_a_guest_that_fails_says_why_and_leaves_no_process(command, said):
    before = qemu_processes()
    done = fscale_vm("exec", "--accel", "tcg", "--memory", "700M", "--", *command)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Call Trace" in done.stderr or "oom-killer" in done.stderr
    assert qemu_processes() == before


@pytest.mark.guest
def test_a_guest_over_its_time_is_ended_with_its_stacks():
    done = fscale_vm("exec", "--accel", "tcg", "--timeout", "45", "--", "sleep", "1000")
    assert done.returncode == 1
    assert "the time limit ended the guest" in done.stderr
    assert "Kernel panic - not syncing: NMI" in done.stderr


@pytest.mark.guest
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_no_guest_survives_its_command(how):
    before = set(qemu_processes())
    argv = ["env", "--default-signal", sys.executable, "-m", "fscale", "vm"]
    argv += ["exec", "--accel", "tcg", "--", "sleep", "1000"]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL) as command:
        deadline = time.monotonic() + 120
        while set(qemu_processes()) == before and time.monotonic() < deadline:
            time.sleep(0.2)
        assert set(qemu_processes()) != before
        time.sleep(1)
        command.send_signal(how)
        code = command.wait(30)
    assert code == (-how if how == signal.SIGKILL else 3)
    deadline = time.monotonic() + 10
    while set(qemu_processes()) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert set(qemu_processes()) == before


@pytest.mark.guest
@pytest.mark.parametrize(("suite", "release"), [("bookworm", "6.1."), ("trixie", "6.12.")])
def test_a_module_under_test_is_built_loaded_and_measured(tmp_path, suite, release):
    if os.geteuid() != 0:
        pytest.skip("building in a Debian tree needs root")
    fixture = ROOT / "tests" / "fixtures" / "trivialfs"
    built = fscale_vm("module", "build", str(fixture), "--kernel", suite)
    assert built.returncode == 0, built.stderr
    output = tmp_path / "run"
    done = fscale_vm(
        *("run", "smoke", "--kernel", suite, "--smp", "2", "--accel", "tcg"),
        *("--module", built.stdout.strip(), "--filesystem", str(fixture / "trivialfs.toml")),
        *("--fs", "trivialfs", "--workload", "MWCL,DWOL", "--cores", "1", "--output", str(output)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((output / "run.json").read_text())["machine"]["kernel"].startswith(release)
    cells = [json.loads(path.read_text()) for path in (output / "cells").glob("*.json")]
    assert [(cell["status"], cell["ops"] > 0) for cell in cells] == [("ok", True)] * 2


@pytest.mark.guest
def test_a_module_that_does_not_load_is_an_error(tmp_path):
    module = compiled(tmp_path / "broken.ko", "vermagic=6.1.0 SMP")
    done = fscale_vm("exec", "--accel", "tcg", "--module", str(module), "--", "true")
    assert done.returncode == 2
    assert "broken.ko cannot be loaded" in done.stdout


@pytest.mark.guest
def test_media_in_memory_have_the_latency_that_they_emulate(tmp_path):
    media = ("brd", "null_blk", "null_ssd", "null_hdd")
    run = (
        "python3 -m fscale run quick --fs ext4 --workload DWSL --cores 1 --repetitions 1 "
        "--duration 1 --media $medium --output /results/$medium || exit 1"
    )
    script = f"for medium in {' '.join(media)}; do {run}; done"
    done = fscale_vm(
        *("exec", "--accel", "tcg", "--output", str(tmp_path), "--", "sh", "-c", script)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rates = {}
    for medium in media:
        (path,) = (tmp_path / medium / "cells").glob("*.json")
        cell = json.loads(path.read_text())
        assert (cell["status"], cell["key"]["medium"]) == ("ok", medium)
        rates[medium] = cell["ops_per_second"]
    # An fsync waits for at least one request: 80 us, 8.2 ms.
    assert rates["null_ssd"] < 1 / 80e-6
    assert 1 < rates["null_hdd"] < 1 / 8.2e-3


@pytest.mark.guest
@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_a_crash_test_passes_and_finds_the_planted_fault(filesystem):
    arguments = ("crash", "--fs", filesystem, "--accel", "tcg", "--points")
    good = fscale_vm(*arguments, "20")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "20 crash points" in good.stdout
    bad = fscale_vm(*arguments, "30", "--plant", "lost-flush")
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "FAIL. The first: after log entry" in bad.stdout


@pytest.mark.guest
@pytest.mark.parametrize("kernel", ["bookworm", "trixie", "sid"])
def test_no_commit_is_logged_before_what_was_flushed_for_it(kernel):
    guest = ("exec", "--accel", "tcg", "--kernel", kernel, "--smp", "1", "--append", "preempt=full")
    done = fscale_vm(*guest, "--", "python3", "-m", "tests.support.crossed_flushes", "4000")
    assert done.returncode == 0, done.stdout + done.stderr
    (counts,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    # Without the order that the recorder keeps, some are: the plant works.
    assert counts["alone"] > 0
    assert counts["in turn"] == 0


@pytest.mark.guest
@pytest.mark.live
@pytest.mark.parametrize("kind", ["lanefs", "f2fs"])
def test_file_systems_of_a_guest_are_aged(kind, tmp_path):
    """F2FS places blocks when they are written: a fallocate alone would leave each file whole."""
    profile = (AGING / "agrawal.toml").read_text().replace("churn = 10\n", "churn = 3\n")
    (tmp_path / "three.toml").write_text(profile)
    done = fscale_vm(
        *("exec", "--kernel", "trixie", "--memory", "2G", "--fs", kind, "--accel", "tcg"),
        *("--output", str(tmp_path), "--", "python3", "-m", "fscale", "run", "smoke"),
        *("--fs", f"{kind}:aged=/results/three.toml", "--workload", "DWAL", "--cores", "1"),
        *("--output", "/results/run"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.search(r"filled -> aged: ([\d.]+) -> ([\d.]+) extents per file", done.stdout)
    assert told, done.stdout
    assert float(told[2]) > float(told[1]) >= 1
