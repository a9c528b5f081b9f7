# SPDX-License-Identifier: GPL-2.0-only
"""A short simulation whose answers are known: private blocks scale, a shared block does not.

Workloads that mount run beside them.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fscale.analysis.reader import Results, load
from fscale.analysis.report import build
from fscale.model.paths import ROOT, TOOL_PATH
from fscale.model.results import Cell
from fscale.model.simulation import Simulation
from tests.support.build_once import build_once

MOUNTING = ("bind_mount_dir", "copy_up_dir", "fuse_getattr_private")
TOOLS = ("mmdebstrap", "mksquashfs", "unsquashfs", "busybox", "cpio", "depmod")
MISSING = [tool for tool in TOOLS if shutil.which(tool, path=TOOL_PATH) is None]
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    # 25 s where the cache is filled; the first test of a machine fetches QEMU and a kernel.
    pytest.mark.timeout(900),
]


def simulate(output: Path) -> subprocess.CompletedProcess[str]:
    workloads = ",".join(("DRBL", "DRBH", *MOUNTING))
    return started(output, "--workload", workloads, "--cores", "1,4", "--windows", "3")


def started(output: Path, *more: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "fscale", "simulate", "--output", str(output), "--fs", "tmpfs"]
    return subprocess.run(
        [*argv, "--memory", "1024", *more], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return load(build_once(tmp_path_factory, "simulated", simulated))


def simulated(root: Path) -> Path:
    """The results of the simulation that all tests but one look at."""
    done = simulate(root / "run")
    assert done.returncode == 0, done.stderr
    return root / "run"


def cell(results: Results, workload: str, cores: int) -> Cell:
    (found,) = [c for c in results.scored if (c.key.workload, c.key.cores) == (workload, cores)]
    return found


def simulation(results: Results, workload: str, cores: int) -> Simulation:
    found = cell(results, workload, cores).simulation
    assert found is not None
    return found


def speedup(results: Results, workload: str) -> float:
    one, four = (cell(results, workload, cores) for cores in (1, 4))
    return four.ops_per_second / one.ops_per_second


def test_private_blocks_scale_and_a_shared_one_does_not(results: Results) -> None:
    assert results.run.machine.kind == "simulated"
    assert 3.8 < speedup(results, "DRBL") < 4.1
    assert speedup(results, "DRBH") < 2.5


def test_workloads_mount_in_a_simulated_guest(results: Results) -> None:
    good = {(c.key.workload, c.key.cores) for c in results.scored}
    assert good >= {(workload, cores) for workload in MOUNTING for cores in (1, 4)}
    # A worker and the process that answers it share a CPU and nothing else.
    assert speedup(results, "fuse_getattr_private") > 3.5
    # Whoever mounts takes the kernel's one lock of all namespaces.
    objects = [line.object for line in simulation(results, "bind_mount_dir", 4).lines[:4]]
    assert any("namespace_sem" in name for name in objects), objects


def test_what_is_shared_moves_between_caches(results: Results) -> None:
    counts = {
        point: cell(results, *point).counts or {}
        for point in (("DRBL", 4), ("DRBH", 4), ("DRBH", 1))
    }
    assert counts["DRBL", 4]["dirty transfers"] < 0.2
    assert counts["DRBH", 1]["dirty transfers"] == 0
    assert counts["DRBH", 4]["dirty transfers"] > 1
    # Who reads a block of a private file executes the same on any number of cores.
    ones = (cell(results, "DRBL", cores).counts or {} for cores in (1, 4))
    one, four = (counted["instructions"] for counted in ones)
    assert four == pytest.approx(one, rel=0.05)
    assert simulation(results, "DRBL", 4).shares()["work"] > 0.9


def test_every_instruction_is_some_functions(results: Results) -> None:
    private = simulation(results, "DRBL", 4)
    work = {one.function: one.instructions for one in private.code}
    assert sum(work.values()) == pytest.approx(private.total("instructions"), rel=0.02)
    # A read of a cached block of tmpfs does the most of its work there.
    assert work["shmem_file_read_iter"] > 0.05 * private.total("instructions")


def test_most_of_what_is_waited_for_is_some_functions(results: Results) -> None:
    shared = simulation(results, "DRBH", 4)
    waited = {one.function: one.stall for one in shared.waits}
    assert 0.95 * shared.total("stall") < sum(waited.values()) <= shared.total("stall")
    assert list(waited.values()) == sorted(waited.values(), reverse=True)
    # For the page's line and for others, as for the lock of those who wait for the page: which
    # function is first is near a tie.
    page = {user.function: user.stall for user in shared.lines[0].users}
    assert all(waited[function] >= stall for function, stall in page.items())
    assert waited["__filemap_get_folio"] > 0.08 * shared.total("stall")


def test_the_reference_count_of_the_shared_page_is_named(results: Results) -> None:
    lines = simulation(results, "DRBH", 4).lines
    pages = [line for line in lines[:3] if line.object.startswith("struct page")]
    assert pages, [line.object for line in lines]
    assert any("filemap" in user.function for user in pages[0].users)


def test_windows_are_whole(results: Results) -> None:
    for workload, cores in (("DRBL", 1), ("DRBL", 4), ("DRBH", 4)):
        windows = simulation(results, workload, cores).windows
        # By count, of a length that the warm-up told; to the edges an operation of each worker.
        assert max(w.ops for w in windows) - min(w.ops for w in windows) <= cores
        assert min(w.ops for w in windows) >= 512 - cores
        assert min(w.seconds for w in windows) > 1e-4
        # The bench reads the guest's clock, which is the simulated one; it counts the warm-up too.
        bench = cell(results, workload, cores).bench
        assert bench is not None
        assert 1 < bench.seconds / sum(w.seconds for w in windows) < 3


def unknown(found: Results) -> list[str]:
    """The points that ended though their throughput is not known well enough.

    The guest judges by its own clock, which has 0.28 us, a hundredth of the shortest window.
    """
    return [
        one.id
        for one in found.scored
        if (made := one.simulation)
        and (made.half_width or 0) >= 0.12
        and len(made.windows) != (16 if one.key.workload == "MWCL" else 48)
    ]


def test_a_point_ends_when_its_throughput_is_known(tmp_path: Path) -> None:
    # By the clock of the simulator the interval of a point may be wider, once in many runs.
    for seed in "123":
        run = tmp_path / seed
        done = started(run, "--workload", "DRBL,DRBH,MWCL", "--cores", "4", "--seed", seed)
        assert done.returncode == 0, done.stderr
        found = load(run)
        if not unknown(found):
            break
    assert not unknown(found)
    assert not found.run.machine.labels
    work = {one.function for one in simulation(found, "MWCL", 4).code}
    assert not any(name.startswith(("apparmor_", "selinux_")) for name in work), work
    for one in found.scored:
        made = one.simulation
        assert made is not None
        assert made.precision == 0.1
        assert made.half_width is not None
        assert len(made.windows) in {8, 12, 16, 24, 32, 48}
        assert {"ordered", "detailed"} <= made.cpu_seconds.keys()
        assert sum(w.cpu_seconds for w in made.windows) <= made.cpu_seconds["detailed"]
    assert len(simulation(found, "DRBL", 4).windows) == 8


def test_the_report_says_that_it_is_simulated(results: Results, tmp_path: Path) -> None:
    page = build(results.path, tmp_path).read_text()
    assert 'id="simulated"' in page
    assert "tmpfs (simulated)" in page
    assert "File-system scalability, simulated" in page


def test_what_is_finished_is_not_simulated_again(results: Results) -> None:
    done = simulate(results.path)
    assert done.returncode == 0
    assert "10 cells are finished" in done.stderr
    assert "is up" not in done.stderr
