# SPDX-License-Identifier: GPL-2.0-only
"""What the cells of a run are, key by key, and which differences are refused, said or nothing."""

from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.compare import definition
from fscale.analysis.compare.definition import meaning, notes, refuse_other_kind
from fscale.model.errors import FscaleError
from fscale.model.facts import Difference, format_value, nearly_equal
from fscale.model.results import Cell, KernelBuild, Mounted, Run, Tuning
from fscale.model.store import Store
from tests.support import synthetic
from tests.support.synthetic import cell, key, write_run

BUILD = KernelBuild(version="#1", id="ab", taint=0, debug=["KASAN"], debug_from="signs")
TUNING = Tuning(
    turbo=True, idle_driver=None, idle_governor="menu", idle_states={"C1": True},
    numa_balancing=None, huge_pages="always", shmem_huge_pages=None,
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    found = Store(write_run(tmp_path, [], workloads=["DRBL", "MWCL"])).load_run()
    assert found is not None
    found.suite = {"warmup": 0.1, "latency": False, "title": "t", "order": "random"}
    found.filesystems = {"ext4": {"kernel": "ext4", "mkfs": ["mkfs.ext4"], "title": "t"}}
    found.media = {"ram": {"kind": "loop", "path": "/a", "title": "t"},
                   "disk": {"kind": "device", "path": "/dev/a"}}  # fmt: skip
    return found


def digest(run: Run, *place: str) -> str:
    return definition.digest(meaning(run, *place))


def changed(run: Run, **changes: Any) -> Run:
    return run.model_copy(update=changes, deep=True)


def on(run: Run, **changes: Any) -> Run:
    return changed(run, machine=run.machine.model_copy(update=changes))


def cells(geometry: dict[str, str] | None = None, **changes: Any) -> list[Cell]:
    return [cell(key(**changes), 100.0, geometry=geometry)]


def test_what_the_figures_of_a_point_mean(run: Run) -> None:
    assert meaning(run, "DRBL", "ext4", "ram") == {
        "suite.warmup": 0.1, "suite.latency": False,
        "filesystems.ext4.kernel": "ext4", "filesystems.ext4.mkfs": ["mkfs.ext4"],
        "media.ram.kind": "loop",
        "workloads.DRBL.operation": "pread(fd, b, 4K, 0)", "workloads.DRBL.setup": "",
        "workloads.DRBL.options": [],
    }  # fmt: skip
    found = meaning(on(run, build=BUILD), "MRPL", "xfs", "disk")
    assert found == {
        "suite.warmup": 0.1, "suite.latency": False, "media.disk.kind": "device",
        "media.disk.path": "/dev/a", "machine.debug": ["KASAN"],
    }  # fmt: skip
    assert meaning(changed(run, suite={}), "MRPL", "xfs", "none") == {}


def test_the_digest_is_kept_and_depends_on_the_meaning(run: Run) -> None:
    # A history of before must go on, so this must never change.
    assert digest(run, "DRBL", "ext4", "ram") == "f75c4065"
    mixed = changed(run, suite=dict(reversed(run.suite.items())))
    assert digest(mixed, "DRBL", "ext4", "ram") == digest(run, "DRBL", "ext4", "ram")
    assert digest(run, "MWCL", "ext4", "ram") == "b7411388"
    assert digest(run, "DRBL", "ext4", "disk") != digest(run, "DRBL", "ext4", "ram")


def test_kinds_of_machines_are_named(run: Run) -> None:
    here = run.machine
    guest = here.model_copy(update={"guest": {"accelerator": "tcg"}})
    refuse_other_kind(guest, guest)
    refuse_other_kind(here, here)
    for base, new, says in (
        (here, guest, "BASE was measured on the machine itself and NEW in a guest (tcg)"),
        (guest, here, "BASE was measured in a guest (tcg) and NEW on the machine itself"),
    ):
        with pytest.raises(FscaleError) as caught:
            refuse_other_kind(base, new)
        assert str(caught.value).startswith(f"{says}, ")


def test_equal_runs_differ_in_nothing(run: Run) -> None:
    full = on(run, build=BUILD, tuning=TUNING)
    assert notes(full, changed(full), cells({"a": "1"}), cells({"a": "1"}), []) == []


def test_simulated_figures_are_told_first_and_differ_by_their_model(run: Run) -> None:
    guest = {"accelerator": "simulated", "model": {"l1": 32, "sockets": 8}}
    one = on(run, guest=guest)
    other = changed(one, suite=one.suite | {"order": "cores"})
    simulated, differ = notes(one, other, cells(), cells(), [])
    assert "simulated" in simulated
    assert differ.endswith(" suite.order: random and cores")
    assert meaning(one, "MRPL", "xfs", "none")["machine.model.l1"] == 32
    larger = on(run, guest=guest | {"model": {"l1": 48, "sockets": 8}})
    with pytest.raises(FscaleError, match=r"machine\.model\.l1: 32 and 48"):
        notes(one, larger, cells(), cells(), [])


def test_what_only_one_side_recorded_is_no_difference(run: Run) -> None:
    new = changed(on(run, build=BUILD, tuning=TUNING), suite={"order": "random", "max_stock": 1})
    new.versions |= {"fscale-bench": "1"}
    assert notes(run, new, cells(), cells({"a": "1"}), []) == []
    assert notes(new, run, cells({"a": "1"}), cells(), []) == []


def test_what_one_caller_alone_passed_on_is_said(run: Run) -> None:
    """A plain value is not recorded, so one side has no such fact."""
    plain, odd = on(run, inherited={}), on(run, inherited={"nice": "10"})
    said = "the sides differ in machine.inherited.nice: "
    assert notes(plain, odd, cells(), cells(), []) == [f"{said}plain and 10"]
    assert notes(odd, plain, cells(), cells(), []) == [f"{said}10 and plain"]
    assert notes(changed(plain, imported="a.csv"), odd, cells(), cells(), []) == []
    unrecorded = {"most open files": "1024"}
    assert notes(plain, on(run, inherited=unrecorded), cells(), cells(), []) == []


def test_a_new_option_that_is_off_is_no_difference(run: Run) -> None:
    def with_default(default: int) -> Run:
        new = changed(run)
        option = {"name": "keep", "default": default, "help": "", "choices": []}
        new.workloads[0] = {**new.workloads[0], "options": [option]}
        return new

    assert digest(run, "DRBL", "ext4", "ram") == digest(with_default(0), "DRBL", "ext4", "ram")
    assert notes(run, with_default(0), cells(), cells(), []) == []
    with pytest.raises(FscaleError, match=r"workloads\.DRBL\.options"):
        notes(run, with_default(5), cells(), cells(), [])


def test_a_refusal_names_all_that_differs_and_how_to_allow_it(run: Run) -> None:
    new = changed(run, suite=run.suite | {"warmup": 2, "order": "cores"})
    new.filesystems["ext4"]["mkfs"] = []
    new.machine.governor = "powersave"
    with pytest.raises(FscaleError) as caught:
        notes(run, new, cells(), cells(), [])
    mkfs, warmup = "filesystems.ext4.mkfs", "suite.warmup"
    assert f": {mkfs}: `mkfs.ext4` and none; {warmup}: 0.1 and 2. " in str(caught.value)
    assert str(caught.value).endswith(f" --allow-different {mkfs} --allow-different {warmup}")
    with pytest.raises(FscaleError, match=r": suite.warmup: 0.1 and 2\. .*suite.warmup$"):
        notes(run, new, cells(), cells(), ["filesystems", "suite.warm"])
    told = notes(run, new, cells(), cells(), ["filesystems.ext4", "suite.warmup"])
    assert [note.partition(" in ")[2] for note in told] == [
        "filesystems.ext4.mkfs: `mkfs.ext4` and none",
        "suite.warmup: 0.1 and 2",
        "suite.order: random and cores",
        "machine.governor: null and powersave",
    ]


def test_only_points_that_were_measured_are_compared(run: Run) -> None:
    new = changed(run)
    new.workloads[0]["operation"] = "mmap"
    new.media["disk"]["path"] = "/dev/b"
    assert notes(run, new, cells(workload="MWCL"), cells(workload="MWCL"), []) == []
    for measured in (cells(), cells(medium="disk")):
        with pytest.raises(FscaleError):
            notes(run, new, measured, measured, [])


def test_another_geometry_is_refused(run: Run) -> None:
    with pytest.raises(FscaleError, match=r"geometry\.a: 4 and 16; .*geometry\.b: x and y\. "):
        notes(run, run, cells({"a": "4", "b": "x"}), cells({"a": "16", "b": "y"}), [])


def test_only_memory_may_be_a_little_more_or_less(run: Run) -> None:
    base, new = (on(run, build=BUILD.model_copy(update={"taint": taint})) for taint in (4096, 4097))
    assert notes(base, new, cells(), cells(), []) == [
        "the sides differ in machine.taint: 4096 and 4097"
    ]


def test_geometry_is_compared_at_equal_points_and_said_once(run: Run) -> None:
    ours = cells({"a": "4", "b": "x"}) + cells({"a": "4"}, cores=2) + cells(None, cores=4)
    theirs = cells({"a": "16", "c": "y"}) + cells({"a": "32"}, cores=2) + cells({"a": "1"}, cores=4)
    allowed = notes(run, run, ours, theirs, ["filesystems.ext4.geometry"])
    assert allowed == ["the sides differ in filesystems.ext4.geometry.a: 4 and 16"]
    assert notes(run, run, cells({"a": "4"}), cells({"a": "8"}, medium="disk"), []) == []


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("100", "105", True), ("100", "106", False), (100, 95.0, True), (100, 94, False),
        ("x", "x", True), ("x", "y", False), (None, None, True), (None, 1, False),
    ],
)  # fmt: skip
def test_a_twentieth_more_or_less_is_alike(one: Any, other: Any, alike: bool) -> None:
    assert nearly_equal(one, other) is alike


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hostname": "b"}, "hostname: synthetic-test-host and b"),
        ({"cpu_model": "b"}, "cpu_model: made-up CPU and b"),
        ({"virtualization": "kvm"}, "virtualization: null and kvm"),
        ({"mitigations": {}}, 'mitigations: {"spectre_v2": "Mitigation: made up"} and {}'),
        ({"cpu_order": [0]}, "cpus: 2 and 1"),
        ({"memory_bytes": 8 << 30}, "memory_bytes: 17179869184 and 8589934592"),
        ({"memory_bytes": (16 << 30) - (512 << 20)}, None),
        ({"kernel_cmdline": "BOOT_IMAGE=/b initrd=/i quiet"}, None),
        ({"kernel_cmdline": "quiet nosmt"}, "kernel_cmdline: quiet and quiet nosmt"),
        ({"kernel": "6.19", "architecture": "arm64"}, None),
        ({"build": BUILD.model_copy(update={"taint": 512})}, "taint: 0 and 512"),
        ({"build": BUILD.model_copy(update={"version": "#2"})}, None),
        ({"tuning": TUNING.model_copy(update={"turbo": False})}, "turbo: true and false"),
        ({"tuning": TUNING.model_copy(update={"preempt": "full"})}, "preempt: none and full"),
        (
            {"tuning": TUNING.model_copy(update={"sysctls": {"vm.dirty_ratio": "40"}})},
            "sysctls.vm.dirty_ratio: 20 and 40",
        ),
        ({"confinement": synthetic.confinement(cpus=1.0)}, "cpus_limit: null and 1.0"),
        ({"confinement": synthetic.confinement(hidden=["x"])}, None),
    ],
)
def test_what_is_said_of_two_machines(run: Run, changes: dict[str, Any], says: str | None) -> None:
    known = {"preempt": "none", "sysctls": {"vm.dirty_ratio": "20"}}
    tuned = TUNING.model_copy(update=known)
    base = on(run, build=BUILD, tuning=tuned, confinement=synthetic.confinement())
    found = notes(base, on(base, **changes), cells(), cells(), [])
    assert found == ([f"the sides differ in machine.{says}"] if says else [])


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ({"scheduler": "none", "write_cache": "write back"}, []),
        ({"scheduler": "bfq"}, ["media.ram.queue.scheduler: none and bfq"]),
        (None, []),  # recorded on one side alone
        ("broken", []),
    ],
)
def test_how_requests_are_queued_is_said(run: Run, queue: Any, said: list[str]) -> None:
    recorded = run.media["ram"] | {"queue": {"scheduler": "none", "write_cache": "write back"}}
    base = changed(run, media={"ram": recorded})
    new = changed(run, media={"ram": recorded | {"queue": queue}})
    found = notes(base, new, cells(), cells(), [])
    assert found == [f"the sides differ in {text}" for text in said]


def test_what_is_said_comes_in_one_order(run: Run) -> None:
    new = on(run, hostname="b", governor="powersave", cpu_model="b", virtualization="kvm")
    found = [said.split()[4] for said in notes(run, new, cells(), cells(), [])]
    names = ("cpu_model", "governor", "hostname", "virtualization")
    assert found == [f"machine.{name}:" for name in names]


def test_versions_and_revisions(run: Run) -> None:
    base, new = (
        changed(
            run,
            revision=name,
            versions=dict.fromkeys(
                ("python", "mkfs of ext4", "fscale-bench", "program of fio", "libc"), name
            ),
        )
        for name in "ab"
    )
    assert [note.partition(" in ")[2] for note in notes(base, new, cells(), cells(), [])] == [
        "fscale-bench: a and b",
        "libc: a and b",
        "mkfs of ext4: a and b",
        "program of fio: a and b",
        "revision: a and b",
    ]


def test_installed_from_packages_the_version_is_the_revision(run: Run) -> None:
    base, new = (changed(run, revision=None, fscale_version=name) for name in "ab")
    assert notes(base, new, cells(), cells(), []) == ["the sides differ in revision: a and b"]


def test_a_difference_is_allowed_by_its_key_or_the_front_of_it() -> None:
    found = Difference("media.ram.size", 1, 2)
    assert found.allowed(["x", "media.ram.size"])
    assert found.allowed(["media"])
    assert not found.allowed(["media.ram.si", "ram", ""])
    assert not found.allowed([])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["mkfs", "-O", "^has journal"], "`mkfs -O '^has journal'`"), ([], "none"),
        ([1, 2], "[1, 2]"), ("x", "x"), (None, "null"), (True, "true"), (0.5, "0.5"),
        (["a", 1], '["a", 1]'),
    ],
)  # fmt: skip
def test_values_as_text(value: Any, said: str) -> None:
    assert format_value(value) == said


EXISTING = {"kernel": "ext4", "existing": True}
ORDERED = ["commit=5", "data=ordered", "relatime", "rw"]


def mounted(options: list[str], source: str = "/dev/sda1", **changes: Any) -> list[Cell]:
    (found,) = cells({"block size": "4096", "size in bytes": "1000000"} | changes)
    found.mount = Mounted(fstype="ext4", source=source, root="/", options=options)
    return [found]


def directory(run: Run, options: list[str]) -> Run:
    return changed(run, filesystems={"ext4": EXISTING | {"mount_options": options}})


@pytest.mark.parametrize(
    ("base", "new", "refused"),
    [({"/sys/a": "1"}, {"/sys/a": "2"}, True), (None, {"/sys/a": "1"}, True),
     ({"/sys/a": "1"}, {}, True), ({}, None, False), ({"/sys/a": "1"}, {"/sys/a": "1"}, False)],
)  # fmt: skip
@pytest.mark.parametrize("turned", [False, True])
def test_files_of_the_kernel_that_were_set_otherwise_are_refused(
    run: Run, base: dict[str, str] | None, new: dict[str, str] | None, refused: bool, turned: bool
) -> None:
    def of(settings: dict[str, str] | None) -> Run:
        ext4 = run.filesystems["ext4"] | ({} if settings is None else {"settings": settings})
        return changed(run, filesystems={"ext4": ext4})

    sides = (new, base) if turned else (base, new)
    if not refused:
        assert not notes(of(sides[0]), of(sides[1]), cells(), cells(), [])
        assert digest(of({}), "DRBL", "ext4", "ram") == digest(run, "DRBL", "ext4", "ram")
        return
    with pytest.raises(FscaleError, match=r"filesystems\.ext4\.settings"):
        notes(of(sides[0]), of(sides[1]), cells(), cells(), [])


def test_a_directory_that_was_mounted_otherwise_is_refused(run: Run) -> None:
    journal = ["commit=5", "data=journal", "nodelalloc", "relatime", "rw"]
    sides = directory(run, ORDERED), directory(run, journal)
    with pytest.raises(FscaleError) as caught:
        notes(*sides, mounted(ORDERED), mounted(journal), [])
    key = "filesystems.ext4.mount_options"
    assert f"{key}: `data=ordered` and `data=journal nodelalloc`" in str(caught.value)
    assert "effective" not in str(caught.value)
    said = notes(*sides, mounted(ORDERED), mounted(journal), [key])
    assert len(said) == 1


@pytest.mark.parametrize(
    ("options", "source", "geometry", "keys"),
    [
        (ORDERED, "/dev/sda1", {}, []),
        (ORDERED[::-1], "/dev/sda1", {"size in bytes": "1010000"}, []),
        (ORDERED, "/dev/sdb1", {}, ["media.ram.source"]),
        (ORDERED, "/dev/sda1", {"block size": "1024"}, None),
        (ORDERED, "/dev/sda1", {"size in bytes": "2000000"}, None),
    ],
)
def test_what_a_directory_lies_on(
    run: Run, options: list[str], source: str, geometry: dict[str, str], keys: list[str] | None
) -> None:
    sides = directory(run, ORDERED), directory(run, options)
    both = mounted(ORDERED), mounted(options, source, **geometry)
    if keys is None:
        with pytest.raises(FscaleError):
            notes(*sides, *both, [])
    else:
        said = [text.removeprefix("the sides differ in ") for text in notes(*sides, *both, [])]
        assert [text.partition(":")[0] for text in said] == keys


def test_the_number_of_a_loop_device_says_nothing(run: Run) -> None:
    sides = directory(run, ORDERED), directory(run, ORDERED)
    assert notes(*sides, mounted(ORDERED, "/dev/loop0"), mounted(ORDERED, "/dev/loop7"), []) == []


def test_other_defaults_of_a_kernel_are_said(run: Run) -> None:
    both = mounted(ORDERED), mounted([*ORDERED, "mb_optimize_scan"])
    (said,) = notes(run, run, *both, [])
    assert "filesystems.ext4.effective.mount_options: none and `mb_optimize_scan`" in said
