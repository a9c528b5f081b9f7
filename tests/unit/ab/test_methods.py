# SPDX-License-Identifier: GPL-2.0-only
"""Each way to compare two sides heeds an option, or refuses it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from fscale.ab import guest_plan, guest_run, guests, plan, run
from fscale.ab.methods import PairedMethod
from fscale.analysis.compare.settings import Settings
from fscale.cli import app, load
from fscale.commands import ab, bisect, noise
from fscale.commands.options.in_guest import comparison_in_guests
from fscale.commands.options.measure import PairedOptions
from fscale.model.catalogue import load_suite
from fscale.model.errors import FscaleError
from fscale.model.variant import parse
from fscale.runner.signals import Signals
from fscale.vm.request import GuestRequest
from fscale.vm.steps import Steps

HOST = ("tmpfs", "tmpfs")
KERNELS = ("kernel:6.1", "kernel:6.12")
KERNEL_SIDES = ("--base", KERNELS[0], "--new", KERNELS[1])


class Reached(Exception):  # noqa: N818 - it says where the command came to
    """The command began to measure; `text`: all that it was to heed."""

    def __init__(self, *heeded: object) -> None:
        self.text = repr(heeded)


@dataclass
class Made:
    """In the place of a plan: all that it was made of."""

    heeded: object
    points: tuple[()] = ()
    one_is_enough: bool = False


@contextmanager
def held(wait: float) -> Iterator[Signals]:
    """In the place of this_machine_held."""
    try:
        yield Signals()
    except Reached as reached:
        raise Reached(reached.text, wait) from None


@pytest.fixture(autouse=True)
def _measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(*args: object, **given: object) -> None:
        raise Reached(args, given)

    monkeypatch.setattr(plan, "make", lambda *args, **given: Made((args, given)))
    monkeypatch.setattr(run, "preview", reached)
    monkeypatch.setattr(run, "execute", reached)
    for command in (ab, bisect, noise):
        monkeypatch.setattr(command, "this_machine_held", held)
    for command in (ab, bisect):
        monkeypatch.setattr(command, "comparison_in_guests", lambda *a, **k: nullcontext((a, k)))
    monkeypatch.setattr(guest_run, "execute", reached)
    monkeypatch.setattr(ab, "nodes_of", reached)
    monkeypatch.setattr(bisect, "_commit", lambda: "0" * 12)


def end(words: Sequence[object]) -> BaseException:
    """How a command ended."""
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exception is not None, result.output
    return result.exception


# A value of each option, and what shows that it is heeded.
GIVEN = {
    "--fs": ("tmpfs,xfs", "'tmpfs,xfs'"),
    "--workload": ("DRBL", "DRBL"),
    "--cores": ("1", "1"),
    "--media": ("loop", "loop"),
    "--mode": ("direct", "direct"),
    "--duration": ("0.75", "0.75"),
    "--option": ("MRPL.access=stat", "MRPL.access=stat"),
    "--set": ("warmup=0.625", "0.625"),
    "--repetitions": ("37", "37"),
    "--max-minutes": ("7", "420|7.0"),
    "--seed": ("4711", "4711"),
    "--device": ("/dev/disk/by-id/one", "by-id/one"),
    "--yes-format": ("one", "'one'"),
    "--dir": ("/srv/scratch", "/srv/scratch"),
    "--binary": ("/opt/bench", "/opt/bench"),
    "--wait": ("77", "77"),
    "--on": ("slurm:all", "slurm:all"),
    "--metric": ("throughput", "metrics=('throughput',)"),
    "--margin": ("0.07", "0.07"),
    "--count-margin": ("0.03", "0.03"),
    "--pause": ("0.125", "0.125"),
    "--fdr": ("0.02", "0.02"),
}
IN_GUESTS = {
    "--filesystem": ("mine.toml", "mine.toml"),
    "--smp": ("3", "smp=3"),
    "--memory": ("5G", "5G"),
    "--accel": ("tcg", "tcg"),
    "--append": ("quiet", "'quiet'"),
    "--timeout": ("78", "78"),
}
OF_A_BOOTED_MACHINE = {
    "--reset-command": ("reset", ""),
    "--console-command": ("cat", ""),
    "--boot-timeout": ("60", ""),
}
GIVEN |= IN_GUESTS | OF_A_BOOTED_MACHINE
OF_A_VERDICT = ("--metric", "--margin", "--count-margin", "--pause", "--fdr")
ON_THIS_MACHINE = {"--device", "--yes-format", "--dir", "--binary", "--wait", "--on"}
LATENCY = ("--metric", "p99", "--latency-margin", "0.25")
REFUSED = {
    "whole": {"--count-margin", "--fs", *IN_GUESTS},
    "cells": {"--count-margin", "--fs", *IN_GUESTS},
    "slices": {"--count-margin", "--duration", "--fs", *IN_GUESTS},
    "boots": {"--count-margin", "--pause"} | ON_THIS_MACHINE,
    "guest slices": {"--duration"} | ON_THIS_MACHINE,  # whose --on is of Dask
}
WAYS = {
    "whole": (*HOST, "--whole"),
    "cells": HOST,
    "slices": (*HOST, "--slices"),
    "boots": KERNELS,
    "guest slices": (*KERNELS, "--slices"),
}


@pytest.mark.parametrize("option", GIVEN)
@pytest.mark.parametrize("way", WAYS)
def test_a_way_heeds_an_option_or_refuses_it(way: str, option: str, tmp_path: Path) -> None:
    base, new, *more = WAYS[way]
    value, shown = GIVEN[option]
    words = ["ab", "--base", base, "--new", new, "--output", tmp_path / "o", *more, option, value]
    ended = end(words)
    if option in REFUSED[way] | OF_A_BOOTED_MACHINE.keys():
        assert isinstance(ended, FscaleError) and option in str(ended)
    else:
        assert isinstance(ended, Reached), ended
        assert any(one in ended.text for one in shown.split("|")), ended.text


def test_guests_boot_on_the_engine_that_is_named(tmp_path: Path) -> None:
    asked = ["ab", *KERNEL_SIDES, "--slices", "--metric", "count", "--output", tmp_path / "o"]
    ended = end([*asked, "--on", "dask://node1:8786"])
    assert isinstance(ended, Reached) and "dask://node1:8786" in ended.text


@pytest.mark.parametrize("way", WAYS)
def test_a_way_heeds_a_latency_and_its_margin_or_refuses_it(way: str, tmp_path: Path) -> None:
    base, new, *more = WAYS[way]
    words = ["ab", "--base", base, "--new", new, "--output", tmp_path / "o", *more]
    ended = end([*words, *LATENCY])
    if way == "guest slices":
        assert isinstance(ended, FscaleError) and "--latency-margin" in str(ended)
        return
    assert isinstance(ended, Reached), ended
    assert "metrics=('p99',)" in ended.text and "latency_margin=0.25" in ended.text
    assert way == "boots" or "'latency': True" in ended.text


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--metric", "p99", "--margin", "0.1"], "--latency-margin"),
        (["--metric", "throughput", "--latency-margin", "0.1"], "p99"),
        (["--latency-margin", "0.1"], "p99"),
        (["--metric", "p98"], "p99.9"),
    ],
)
@pytest.mark.parametrize("way", ["cells", "boots"])
def test_a_margin_or_a_key_that_cannot_be_heeded_is_refused(
    way: str, options: list[str], part: str, tmp_path: Path
) -> None:
    base, new, *more = WAYS[way]
    ended = end(["ab", "--base", base, "--new", new, "--output", tmp_path / "o", *more, *options])
    assert isinstance(ended, FscaleError), ended
    assert part in str(ended)


def test_latencies_are_recorded_where_a_metric_needs_them(tmp_path: Path) -> None:
    words = ["ab", "--base", "tmpfs", "--new", "tmpfs", "--output", tmp_path / "o", *LATENCY]
    assert "'latency': True" in str(end([*words, "--set", "latency=true"]))
    assert "latency=false" in str(end([*words, "--set", "latency=false"]))
    for keys, recorded in (
        ([], ["latency=true"]),
        (["latency=true"], ["latency=true"]),
        (["latency = true"], ["latency = true"]),
    ):
        assert PairedOptions(suite_keys=keys).recording(["p99"]).suite_keys == recorded
    assert PairedOptions(cores="1").recording(["jain"]) == PairedOptions(cores="1")
    with pytest.raises(FscaleError, match="max"):
        PairedOptions(suite_keys=["latency=false"]).recording(["max"])


def test_a_guest_gets_the_options_as_arguments() -> None:
    given = PairedOptions(cores="1", duration=0.5, suite_keys=["a=1", "b=2"], suite=Path("smoke"))
    assert given.arguments == ["--cores=1", "--duration=0.5", "--set=a=1", "--set=b=2"]


def test_slices_in_guests_judge_no_latency(tmp_path: Path) -> None:
    with pytest.raises(FscaleError, match="jain"):
        guest_plan._check_pairs([], GuestRequest(), Settings(metrics=("jain",)), 0)


def test_all_options_that_are_not_heeded_are_named_at_once(tmp_path: Path) -> None:
    words = ["ab", "--base", "ext4:kernel=6.1", "--new", "ext4:kernel=6.12", "--output", tmp_path]
    said = str(end([*words, "--wait", 1, "--binary", "/x", "--yes-format", "y"]))
    assert all(option in said for option in ("--wait", "--binary", "--yes-format"))


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_dry_run_in_guests_is_one(
    dry_run: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ab, "comparison_in_guests", lambda *_, **__: nullcontext("a source"))
    ends: list[str] = []
    monkeypatch.setattr(guest_run, "preview", lambda _: ends.append("previewed"))
    monkeypatch.setattr(guest_run, "execute", lambda *_: ends.append("measured"))
    words = ["ab", *KERNEL_SIDES, "--output", str(tmp_path), *(["--dry-run"] if dry_run else [])]
    result = CliRunner().invoke(app, words)
    assert (ends, result.exit_code) == ((["previewed"], 0) if dry_run else (["measured"], 1))


def test_a_guest_has_the_cpus_of_the_largest_core_count_or_of_smp(tmp_path: Path) -> None:
    words = ["ab", *KERNEL_SIDES, "--output", tmp_path / "o", "--cores", "1,7"]
    assert "smp=7" in str(getattr(end(words), "text", ""))
    assert "smp=3" in str(getattr(end([*words, "--smp", "3"]), "text", ""))


def test_sides_that_name_file_systems_take_no_others(tmp_path: Path) -> None:
    sides = map(parse, ("ext4:kernel=6.1", "ext4:kernel=6.12"))
    given: dict[str, Any] = {"options": GuestRequest(), "settings": Settings()}
    with (
        pytest.raises(FscaleError, match="--fs: ext4"),
        comparison_in_guests(
            *sides, PairedOptions(fs="xfs"), slices=False, output=tmp_path, seed=1, **given
        ),
    ):
        pass


@pytest.mark.parametrize(("repetitions", "enough"), [(2, False), (4, False), (5, True)])
def test_boots_that_could_find_nothing_are_refused_before_one_boots(
    repetitions: int, enough: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached(*_: object, **__: object) -> None:
        raise Reached

    monkeypatch.setattr(guest_plan, "make_guests", reached)
    given: dict[str, Any] = {
        "files": {},
        "options": GuestRequest(),
        "output": tmp_path,
        "seed": 1,
        "settings": Settings(),
        "steps": Steps(Console(file=StringIO())),
    }
    with pytest.raises(Reached if enough else FscaleError) as caught:
        guest_plan.make(
            *(*map(parse, KERNELS), ["quick"]),
            suite=load_suite(Path("quick")),
            slices=False,
            repetitions=repetitions,
            **given,
        )
    assert enough or "--repetitions 5" in str(caught.value)


def test_every_option_is_known_to_this_test() -> None:
    outputs = {"--json", "--junit", "--markdown", "--mail", "--html", "--ktap", "--all", "--output"}
    others = {"--base", "--new", "--suite", "--slices", "--dry-run", "--help", "--latency-margin"}
    others |= {"--deterministic", "--fail-undecided"}
    outputs |= {"--kcidb", "--origin", "--build-id", "--checkout-id", "--commit", "--platform"}
    options = {option.opts[0] for option in load("ab").params}
    assert options - outputs - others == GIVEN.keys()


@pytest.mark.parametrize(
    ("base", "new"),
    [
        ("kernel:6.1", "ext4"),
        ("ext4", "ext4:kernel=6.12"),
        ("my:module=a.ko", "my"),
        ("my:kernel=6.12:module=a.ko", "my:module=b.ko"),
        ("tmpfs", "kernel:6.12"),
        ("ext4:mount=data=journal", "kernel:6.12"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_both_sides_have_a_kernel_or_none(base: str, new: str, turned: bool) -> None:
    sides = (new, base) if turned else (base, new)
    with pytest.raises(FscaleError, match=r"names no kernel"):
        PairedMethod.BOOTS.refuse_others(*map(parse, sides))


@pytest.mark.parametrize("sides", [KERNELS, ("my:module=a.ko", "my:module=b.ko")])
def test_pairs_of_one_kind_are_pairs(sides: tuple[str, str]) -> None:
    PairedMethod.GUEST_SLICES.refuse_others(*map(parse, sides))


PARTS = {
    "mount": "mount=commit=1",
    "mkfs": "mkfs=-m0",
    "partitions": "partitions=4",
    "set": "set=/sys/a=1",
    "aged": "aged=agrawal",
    "binary": "binary=/b",
    "kernel": "kernel=6.12",
    "module": "module=a.ko",
}
HEEDED = {
    PairedMethod.CELLS: {"mount", "mkfs", "partitions", "set", "aged", "binary"},
    PairedMethod.SLICES: {"mount", "mkfs", "partitions", "set", "aged", "binary"},
    PairedMethod.BOOTS: {"mount", "mkfs", "partitions", "set", "kernel", "module"},
    PairedMethod.GUEST_SLICES: {"mount", "mkfs", "partitions", "set", "kernel", "module"},
    PairedMethod.SIMULATED: {"mount", "mkfs", "kernel", "module"},
    PairedMethod.REFERENCE: set(),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("way", HEEDED)
def test_a_way_heeds_a_part_of_a_side_or_refuses_it(way: PairedMethod, part: str) -> None:
    side = parse(f"ext4:{PARTS[part]}")
    if part in HEEDED[way]:
        way.refuse_others(side, side)
        return
    with pytest.raises(FscaleError) as caught:
        way.refuse_others(side, side)
    assert f"{part}=" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["ab", "--base", "ext4:binary=/b:kernel=6.1", "--new", "ext4:kernel=6.12"], "binary="),
        (["ab", "--base", "ext4:set=/x=1", "--new", "ext4"], "/sys/"),
        (["noise", "--fs", "ext4:kernel=6.12"], "kernel="),
        (["noise", "--fs", "kernel:6.12"], "kernel="),
        (["gate", "--base", "ext4:binary=/b", "--new", "ext4"], "binary="),
        (["gate", "--base", "ext4", "--new", "ext4:set=/sys/a=1"], "set="),
        (["simulate", "--fs", "ext4:kernel=6.12"], "kernel="),
        (["simulate", "--fs", "ext4:set=/sys/a=1"], "set="),
        (["run", "smoke", "--dry-run", "--fs", "ext4:module=a.ko"], "module="),
        (["run", "smoke", "--dry-run", "--fs", "tmpfs:binary=/b"], "binary="),
        (["vm", "run", "smoke", "--fs", "ext4:kernel=6.12"], "kernel="),
        (["vm", "run", "smoke", "--fs", "ext4:aged=agrawal"], "aged="),
        (["simulate", "--fs", "ext4:aged=agrawal"], "aged="),
        (["ab", "--base", "ext4", "--new", "xfs", "--smp", "2"], "--smp"),
    ],
)
def test_every_command_refuses_what_it_does_not_heed(
    words: list[str], part: str, tmp_path: Path
) -> None:
    ended = end([*words, "--output", tmp_path / "o"])
    assert isinstance(ended, FscaleError), ended
    assert part in str(ended)


def test_the_gate_has_both_kernels_or_none(tmp_path: Path) -> None:
    words = ["gate", "--base", "ext4", "--new", "ext4:kernel=6.12", "--output", tmp_path]
    assert "kernel" in str(end(words))


NOT_OF_NOISE = {*OF_A_VERDICT, *IN_GUESTS, *OF_A_BOOTED_MACHINE, "--on", "--fs"}


@pytest.mark.parametrize("option", [option for option in GIVEN if option not in NOT_OF_NOISE])
def test_noise_heeds_what_it_takes(option: str, tmp_path: Path) -> None:
    value, shown = GIVEN[option]
    ended = end(["noise", "--fs", "tmpfs", "--output", tmp_path / "o", option, value])
    assert isinstance(ended, Reached), ended
    assert any(one in ended.text for one in shown.split("|")), ended.text


@pytest.mark.parametrize(
    ("sides", "options"),
    [
        (HOST, {"--filesystem", "--allow-different", "--on"}),
        (KERNELS, {"--allow-different", "--duration"} | (ON_THIS_MACHINE - {"--on"})),
        (None, {"--workload", "--cores", "--duration", "--max-minutes", "--wait", "--set"}),
    ],
)
def test_bisect_stops_at_what_it_does_not_heed(
    sides: tuple[str, str] | None, options: set[str], tmp_path: Path
) -> None:
    """Code 128: git would take others for a verdict."""
    given = ["--base", sides[0], "--new", sides[1]] if sides else ["--reference", str(tmp_path)]
    values = {**GIVEN, "--filesystem": ("x.toml", ""), "--allow-different": ("suite", "")}
    values["--on"] = ("dask://node1:8786", "")
    for option in options:
        words = [
            "bisect",
            *given,
            "--output",
            str(tmp_path),
            option,
            values[option][0],
            "--",
            "true",
        ]
        result = CliRunner().invoke(app, words)
        assert (result.exit_code, option in result.output + result.stderr) == (128, True), option


@pytest.mark.parametrize(
    "sides",
    [
        [],
        ["--base", "tmpfs"],
        ["--new", "tmpfs"],
        ["--reference", ".", "--base", "tmpfs"],
        ["--reference", ".", "--new", "tmpfs"],
        ["--reference", ".", "--base", "tmpfs", "--new", "tmpfs"],
    ],
)
def test_bisect_takes_both_sides_or_a_reference(sides: list[str], tmp_path: Path) -> None:
    words = ["bisect", *sides, "--output", str(tmp_path), "--", "true"]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, "give either" in result.output + result.stderr) == (128, True)


def test_an_image_is_booted_with_the_modules_of_its_side(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(spec: str, _: object, *, modules: Path | None) -> None:
        raise Reached(spec, str(modules))

    monkeypatch.setattr(guests.kernels, "of_guest", resolve)
    monkeypatch.setattr(guests.rootfs, "images", lambda _: None)
    sides = [parse("xfs:kernel=/b/bzImage:modules=/lib/m")] * 2
    with pytest.raises(Reached) as reached:
        guests.make_guests(
            *sides, ["xfs"], files={}, options=GuestRequest(), steps=Steps(Console(file=StringIO()))
        )
    assert reached.value.text == repr(("/b/bzImage", "/lib/m"))
