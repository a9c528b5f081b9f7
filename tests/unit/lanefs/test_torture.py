# SPDX-License-Identifier: GPL-2.0-only
"""The planner of the long tests of lanefs: what they add up to, what is not run twice."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from fscale.model.errors import FscaleError
from fscale.model.paths import ROOT
from fscale.vm.crashload import WORKLOADS
from tests.lanefs.torture import __main__ as torture
from tests.lanefs.torture import drive
from tests.lanefs.torture.plan import COLLECTORS, KERNELS, LIMIT, Boot, Part, Slice, plan
from tests.lanefs.torture.state import Record, State, source_hash
from tests.lanefs.torture.table import left, render


def amount(kernel: str, part: str) -> int:
    return sum(p.amount for p in plan() if (p.boot.kernel, p.part.name) == (kernel, part))


def option(piece: Slice, name: str) -> str:
    return piece.argv[piece.argv.index(name) + 1]


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_plan_adds_up(kernel):
    assert amount(kernel, "model") >= 1_000_000
    assert amount(kernel, "images") >= 2_000
    assert amount(kernel, "crash") >= 1_500
    assert amount(kernel, "suite") == 19 * 4
    assert amount(kernel, "recoveries") >= 100
    apps = [option(p, "--workload") for p in plan([kernel]) if p.part.name == "apps"]
    assert sorted(apps) == ["dbench", "exim", "rocksdb"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_plan_of_a_log_adds_up(kernel):
    planned = plan([kernel], log=True)
    amounts = Counter()
    for piece in planned:
        amounts[piece.part.name] += piece.amount
    assert amounts["full"] >= 1_000_000 and amounts["crash"] >= 1_500
    assert amounts["images"] >= 2_000 and amounts["recoveries"] >= 100
    assert all(option(p, "--fs") == "lanefs_log" for p in planned)
    assert all(option(p, "--append") == "lanefs.gc_low=100" for p in planned)
    mounted = " ".join(" ".join(p.argv) for p in planned if p.part.name in ("crash", "full"))
    assert all(options in mounted for options in COLLECTORS)
    assert not {p.id for p in planned} & {p.id for p in plan([kernel])}


def test_each_model_slice_does_what_it_counts():
    for piece in plan():
        if piece.part.name in ("model", "pressure", "full"):
            ops, rounds, processes = (
                int(option(piece, name)) for name in ("--ops", "--rounds", "--processes")
            )
            assert processes == 8 and ops * rounds * processes == piece.amount


def test_every_mix_of_operations_is_cut_on_every_kernel():
    for kernel in KERNELS:
        cut = [p for p in plan([kernel]) if p.part.name == "crash"]
        assert {option(p, "--workload") for p in cut} == set(WORKLOADS)
        assert all(int(option(p, "--subsets")) > 0 for p in cut)


def test_slices_differ_and_end_in_time():
    planned = plan()
    assert len({p.id for p in planned}) == len(planned)
    assert len({(p.module, *p.argv) for p in planned}) == len(planned)
    assert all(option(p, "--timeout") == str(LIMIT) for p in planned)


def test_a_short_run_sees_every_part_on_every_kernel():
    parts = {(p.boot.kernel, p.part.name) for p in plan()}
    assert {(p.boot.kernel, p.part.name) for p in plan()[: len(parts)]} == parts


def test_images_of_kernels_differ():
    seeds = [option(p, "--seed") for p in plan() if p.part.name == "images"]
    assert len(set(seeds)) == len(seeds)


def record(name: str, ok: bool = True, source: str = "s", seconds: float = 10) -> Record:
    return Record(source, name, ["x"], ok, seconds, "text", "2026-11-20T12:00:00+00:00")


def test_the_state_keeps_sources_apart_and_the_last_record_counts(tmp_path):
    state = State(tmp_path)
    state.add(record("a", ok=False))
    state.add(record("a"))
    state.add(record("b", source="other"))
    assert {name: r.ok for name, r in State(tmp_path).records("s").items()} == {"a": True}
    assert set(State(tmp_path).records("other")) == {"b"}


def test_a_record_that_was_cut_off_costs_no_other(tmp_path):
    state = State(tmp_path)
    state.add(record("a"))
    with (tmp_path / "state.jsonl").open("a") as file:
        file.write('{"source": "s", "sli')
    state.add(record("b"))
    assert set(state.records("s")) == {"a", "b"}


def sources(root: Path) -> Path:
    for name in ("kernel/a.c", "tests/t.c", "format.h"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def test_the_hash_is_of_the_sources_without_unit_tests(tmp_path):
    root = sources(tmp_path)
    first = source_hash(root)
    (root / "tests/t.c").write_text("other")
    (root / "README.md").write_text("other")
    assert source_hash(root) == first
    (root / "format.h").write_text("other")
    assert source_hash(root) != first


PART = Part("part", "units", 3, 5, 100)


def piece(number: int, *argv: str, results: bool = False) -> Slice:
    return Slice(Boot("trixie"), PART, number, "json.tool", list(argv), PART.amount, results)


def test_the_time_that_is_left_is_that_of_slices_like_it():
    planned = [piece(n) for n in range(3)]
    assert left(planned, {}) == 300
    assert left(planned, {"trixie-part-0": record("trixie-part-0")}) == 20
    assert left(planned, {"trixie-part-0": record("trixie-part-0", ok=False)}) == 30


def test_the_table_counts_what_passed_and_names_what_failed():
    planned = [piece(n) for n in range(3)]
    done = {p.id: record(p.id, ok=p.number != 1) for p in planned[:2]}
    row = render(planned, done, "hash").splitlines()[-1].split()
    assert row == ["trixie", "part", "5", "15", "units", "1", "0.3"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`torture._run` with `drive.run` replaced; returns what ran, and the return values."""

    def go(verdicts, most=0, change=None):
        ran = []

        def fake(which, directory):
            ran.append(which.number)
            if change:
                change()
            return drive.Verdict(verdicts.get(which.number, True), 1, "text")

        monkeypatch.setattr(drive, "run", fake)
        state = State(tmp_path / "out")
        failed = torture._run([piece(n) for n in range(3)], state, tmp_path / "out", most)
        return ran, failed

    monkeypatch.setattr(torture, "LANEFS", sources(tmp_path / "lanefs"))
    return go


def test_what_passed_is_not_run_again(run, tmp_path):
    assert run({}, most=2) == ([0, 1], False)
    assert run({}) == ([2], False)
    assert run({}) == ([], False)
    (tmp_path / "lanefs/format.h").write_text("changed")
    assert run({}, most=1) == ([0], False)


def test_a_failure_stops_nothing_and_is_tried_again_after_the_others(run):
    assert run({0: False}, most=1) == ([0], True)
    assert run({0: False}) == ([1, 2, 0], True)
    assert run({}) == ([0], False)


def test_a_slice_counts_for_nothing_when_the_sources_changed_under_it(run, tmp_path):
    def change():
        (tmp_path / "lanefs/format.h").write_text("changed")

    before = source_hash(tmp_path / "lanefs")
    with pytest.raises(FscaleError, match="changed"):
        run({}, change=change)
    assert State(tmp_path / "out").records(before) == {}


@pytest.mark.parametrize(
    ("status", "text", "verdict"),
    [
        (0, "fine", ""),
        (1, "why", "exit code 1: why"),
        (None, "", "it did not end"),
        (
            0,
            f"ok\n{drive.KERNEL_REPORT}: WARNING: CPU: 0",
            f"{drive.KERNEL_REPORT}: WARNING: CPU: 0",
        ),
    ],
)
def test_verdicts(status, text, verdict):
    assert drive.judge(piece(0), status, text, None) == verdict


def test_a_slice_without_all_its_cells_failed(tmp_path):
    class Cells:
        def cells(self):
            return []

    verdict = drive.judge(piece(0, results=True), 0, "", Cells())
    assert verdict == "0 of 5 cells were measured"


def test_a_slice_is_run_and_its_words_are_kept(tmp_path):
    file = tmp_path / "x.json"
    file.write_text("{}")
    good = drive.run(piece(0, str(file)), tmp_path)
    assert good.ok and (tmp_path / "trixie-part-0.log").read_text() == "{}\n"
    bad = drive.run(piece(1, "/does/not/exist"), tmp_path)
    assert not bad.ok and "exist" in bad.text


def test_an_interrupt_ends_the_slice_too(tmp_path):
    script = """
import sys
from pathlib import Path
from fscale.runner.signals import Signals
from tests.lanefs.torture import drive
from tests.lanefs.torture.plan import Boot, Part, Slice
piece = Slice(Boot("k"), Part("p", "u", 1, 1, 1), 0, "http.server", ["--bind", "127.0.0.1", "0"], 1)
with Signals().installed():
    drive.run(piece, Path(sys.argv[1]))
"""
    driver = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    log = tmp_path / "k-p-0.log"
    deadline = time.monotonic() + 60
    children = Path(f"/proc/{driver.pid}/task/{driver.pid}/children")
    while not (log.exists() and children.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    child = int(children.read_text())
    time.sleep(0.5)
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode != 0 and "stopped by SIGINT" in said
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_built_tree_takes_the_place_of_the_kernels():
    planned = plan(["/cache/0123/build"], 1800, "nokaslr quiet")
    assert planned[0].id == "0123-functions-0"
    for one in planned:
        assert option(one, "--kernel-tree") == "/cache/0123/build" and "--kernel" not in one.argv
        assert option(one, "--timeout") == "1800"
        assert option(one, "--append") == "nokaslr quiet"


def test_images_hold_entries_of_other_domains_also_on_one_cpu():
    for one in (p for p in plan() if p.part.name == "images"):
        assert option(one, "--smp") == "1"
        assert option(one, "-o").split(",")[0] == "placement=roundrobin"
        assert option(one, "--mkfs") == "--domains 2"


def test_unknown_names_are_refused():
    assert {p.part.name for p in torture.choose(plan(), ["crash"])} == {"crash"}
    with pytest.raises(FscaleError, match="no part x"):
        torture.choose(plan(), ["x"])


def test_logs_have_transactions_of_all_modes():
    """Half of the cuts remount while the workload runs; operations come in each mode as well."""
    modes = {f"journal={mode}" for mode in ("concurrent", "parallel", "serial")}
    cuts = [one for one in plan() if one.part.name == "crash"]
    remounted = [one for one in cuts if "--remount" in one.argv]
    assert len(remounted) == len(cuts) / 2
    # At seven points of ten something was under way, and there is a second state with a part of it.
    states = dict.fromkeys(modes, 0.0)
    for one in cuts:
        begins = option(one, "--mount-options").split(",")[-1]
        follow = {word for word in one.argv if word in modes} or {begins}
        assert follow in (modes, {begins})
        for mode in follow:
            states[mode] += 1.7 * one.amount / len(follow)
    assert min(states.values()) >= 1350
    assert modes == {option(o, "-o").split(",")[1] for o in plan() if o.part.name == "model"}
