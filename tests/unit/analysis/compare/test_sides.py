# SPDX-License-Identifier: GPL-2.0-only
"""What `compare` makes of two runs, or of the two sides of one: references, warnings, refusals."""

import gzip
import io
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import fscale
from fscale.analysis.compare import answer, locks, wording
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.locks import changed_locks, shares
from fscale.analysis.compare.model import Comparison, RunRef
from fscale.analysis.compare.pairs import subject_of
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.diagnosis.naming import By, Name
from fscale.analysis.diagnosis.triage import COUNTER, LOCK, Suspect, Triage
from fscale.analysis.formats import console, junit, ktap, mail, markdown
from fscale.analysis.metrics import DOUBLING, PEAK, SPEEDUP, THROUGHPUT
from fscale.analysis.reader import load
from fscale.analysis.report import build, comparison_page
from fscale.cli import app
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, KernelBuild
from tests.support.synthetic import cell, key, machine, sliced, write_run

RATES = [100.0, 101, 99, 100.5, 99.5, 100.2]


def cells(**changes: Any) -> list[Cell]:
    return [cell(key(n, **changes), rate) for n, rate in enumerate(RATES, 1)]


def written(directory: Path, own: list[Cell] | None = None, **changes: Any) -> Path:
    own = cells() if own is None else own
    return write_run(directory, own, filesystems=["ext4"], id=directory.name, **changes)


def paired(directory: Path, record: object, **changes: Any) -> Path:
    both = cells(side="A") + cells(side="B", filesystem="xfs")
    written(directory, both, **changes)
    (directory / "ab.json").write_text(json.dumps(record))
    return directory


RECORD = {"schema": 1, "base": "ext4", "new": "xfs:mkfs=-q", "looks": [6]}


def judged(base: Path, new: Path | None = None, **settings: Any) -> Comparison:
    return compare(open_sides(base, new), Settings(**settings))


def said(base: Path, new: Path) -> list[str]:
    first, *others = judged(base, new).warnings
    assert first.startswith("the sides were not interleaved")
    assert "`fscale ab`" in first
    return others


def refusal(*sides: Path | None, **settings: Any) -> str:
    with pytest.raises(FscaleError) as caught:
        judged(*sides, **settings)  # type: ignore[arg-type]
    return str(caught.value)


def by_command(directory: Path, *options: str) -> str:
    done = CliRunner().invoke(app, ["compare", str(directory), "--json", *options])
    (row,) = json.loads(done.stdout)["judgements"]
    return str(row["verdict"])


def test_a_run_of_two_sides_is_judged_by_its_own_rules(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    both = [cell(key(n, side="A"), rate) for n, rate in enumerate(RATES, 1)]
    both += [cell(key(n, side="B"), 0.93 * rate) for n, rate in enumerate(RATES, 1)]
    written(directory, both)
    verdict = {}
    for margin in (0.05, 0.2):
        record = RECORD | {"new": "ext4", "settings": {"metrics": ["throughput"], "margin": margin}}
        (directory / "ab.json").write_text(json.dumps(record))
        verdict[margin] = by_command(directory)
        assert list(fscale.compare(directory).verdict) == [verdict[margin]]
        page = build(directory).read_text()
        table = page.partition('aria-label="Table of verdicts"')[2].partition("</table>")[0]
        assert ("slower" in table) is (verdict[margin] == "slower")
        assert by_command(directory, "--margin", "0.01") == "slower"
    assert verdict == {0.05: "slower", 0.2: "same"}


def test_two_runs_and_where_they_come_from(tmp_path: Path) -> None:
    build = KernelBuild(version="#1 SMP", id="ab", taint=0, debug=[], debug_from="signs")
    base = written(tmp_path / "one", machine=machine(1).model_copy(update={"build": build}))
    bare = machine(1).model_copy(update={"build": build.model_copy(update={"id": None})})
    new = written(tmp_path / "two\x1b", machine=bare)
    found = judged(base, new, margin=0.1)
    assert found.base == RunRef(
        path=str(base), id="one", started="2026-01-01T00:00:00Z", kernel="0.0.0-synthetic",
        build="#1 SMP", build_id="ab", machine="synthetic-test-host", label="one",
        cpus="1 x made-up CPU", command=["bin/fscale run quick --output 'results/x y'"],
    )  # fmt: skip
    assert (found.new.path, found.new.build, found.new.build_id) == (str(new), "#1 SMP", None)
    assert "\x1b" not in found.new.id + found.new.label
    assert judged(written(tmp_path / "x"), base).base.build is None
    assert judged(written(tmp_path / "y"), base).base.build_id is None
    # Throughput, and operations per CPU second: a family of two, for which 0.005 takes 6.
    assert (found.tests, found.repetitions_needed, found.settings.margin) == (2, 6, 0.1)
    assert [j.verdict for j in found.judgements] == ["same", "same"]
    assert (found.health, found.locks, found.missing_in_base, found.missing_in_new) == (
        [],
        [],
        [],
        [],
    )


def test_two_sides_of_one_run(tmp_path: Path) -> None:
    sides = open_sides(paired(tmp_path / "ab", RECORD), None)
    assert (sides.base.label, sides.new.label, sides.base.id) == ("ext4", "xfs:mkfs=-q", "ab")
    assert {c.key.side for c in sides.base_cells} == {"A"}
    assert {c.key.side for c in sides.new_cells} == {"B"}
    assert (len(sides.base_cells), len(sides.new_cells)) == (6, 6)
    assert (sides.interleaved, sides.looks) == (True, (6,))
    assert sides.base_results is sides.new_results
    found = compare(sides, Settings())
    assert found.warnings == []
    # The first of an infinite number of looks may spend a half.
    assert [j.level for j in found.judgements] == pytest.approx([0.975, 0.975])
    assert found.repetitions_needed == 6


@pytest.mark.parametrize(
    ("built", "shown"),
    [
        (("before", "after"), ("module=before/my.ko", "module=after/my.ko")),
        # Two commits of one directory are told apart by the digests alone.
        (
            ("my", "my"),
            (
                "module=/c/fscale/vm/module/{0:016x}/my/my.ko",
                "module=/c/fscale/vm/module/{1:016x}/my/my.ko",
            ),
        ),
    ],
)
def test_a_side_is_named_by_what_was_built_and_not_by_a_place_in_a_cache(
    built: tuple[str, str], shown: tuple[str, str], tmp_path: Path
) -> None:
    texts = [
        f"my:kernel=6.12:module=/c/fscale/vm/module/{n:016x}/{name}/my.ko"
        for n, name in enumerate(built)
    ]
    sides = open_sides(paired(tmp_path / "ab", RECORD | {"base": texts[0], "new": texts[1]}), None)
    assert (sides.base.label, sides.new.label) == tuple(
        f"my:kernel=6.12:{text.format(0, 1)}" for text in shown
    )
    assert not sides.identical


def test_each_look_at_pairs_that_was_taken_is_paid_for(tmp_path: Path) -> None:
    both = [sliced(key(n, side=side), [1e6 + 1e3 * n] * 10) for side in "AB" for n in range(1, 9)]
    written(tmp_path, both)
    for looks, share in (([], 1), ([8], 2), ([6, 8], 6)):
        record = RECORD | {"pair_looks": looks}
        (tmp_path / "ab.json").write_text(json.dumps(record))
        assert open_sides(tmp_path, None).pair_looks == tuple(looks)
        (judgement,) = judged(tmp_path, metrics=("throughput",)).judgements
        assert judgement.level == pytest.approx(1 - 0.05 / share)


def test_what_became_of_points_is_found_by_its_kind(tmp_path: Path) -> None:
    base = written(tmp_path / "one")
    broken = [c.model_copy(update={"status": "error", "reason": "ENOSPC"}) for c in cells()]
    found = judged(base, written(tmp_path / "two", broken))
    assert [h.kind for h in found.of_kind("broken")] == ["broken"]
    assert found.of_kind("lost") == []


def test_what_is_asked_for_is_judged(tmp_path: Path) -> None:
    base = written(tmp_path / "base", [*cells(), *cells(cores=2), *cells(cores=4)])
    found = judged(base, base, metrics=("throughput",), fdr=0.05)
    one, two, four, *curve = found.judgements
    assert {j.metric for j in (one, two, four)} == {THROUGHPUT}
    assert [j.metric for j in curve] == [SPEEDUP, DOUBLING, PEAK]
    assert not one.interleaved
    ab = judged(paired(tmp_path / "ab", RECORD))
    assert all(j.interleaved for j in ab.judgements)
    # The same rate at each core count: the peak is at the fewest.
    assert set(curve[2].base.values.values()) == {1.0}


def test_two_file_systems_are_compared_in_health_too(tmp_path: Path) -> None:
    failed = cells(filesystem="xfs")
    failed[0].status = "error"
    found = judged(written(tmp_path / "base"), written(tmp_path / "new", failed))
    assert [(h.kind, h.subject.filesystem) for h in found.health] == [("broken", "ext4")]
    assert found.missing_in_new == found.missing_in_base == []


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (None, "{0} is a single run, not an interleaved one of `fscale ab`; give a second run to "
         "compare it with"),
        ([], "cannot use {0}/ab.json: the file: Input should be an object; run `fscale ab` again"),
        ({}, "cannot use {0}/ab.json: base: Field required (and 2 more); run `fscale ab` again"),
        ("link", "cannot use {0}/ab.json: it is a link; links in a results directory are not "
         "followed; run `fscale ab` again"),
    ],
)  # fmt: skip
def test_one_run_that_has_no_sides_is_refused(tmp_path: Path, record: object, says: str) -> None:
    run = written(tmp_path / "run")
    if record == "link":
        (run / "ab.json").symlink_to(run / "run.json")
    elif record is not None:
        (run / "ab.json").write_text(json.dumps(record))
    assert refusal(run, None) == says.format(run)


@pytest.mark.parametrize("first", [True, False])
def test_a_run_with_both_sides_is_no_side(first: bool, tmp_path: Path) -> None:
    """Where both sides have one file system, the second would replace the first."""
    both = written(tmp_path / "both", cells(side="A") + cells(side="B"))
    runs = (both, written(tmp_path / "one"))
    with pytest.raises(FscaleError, match="both contains both sides of a comparison"):
        judged(*runs if first else runs[::-1])


def test_the_sides_of_a_run_may_be_two_kinds_of_machine_only_where_that_is_no_mix(
    tmp_path: Path,
) -> None:
    guest = {"accelerator": "tcg", "B": {"accelerator": "tcg", "label": "of B"}}
    same = paired(tmp_path / "same", RECORD, machine=machine(1).model_copy(update={"guest": guest}))
    assert judged(same).warnings == ["measured in a guest (None)"]
    mixed = guest | {"B": {"accelerator": "kvm"}}
    other = paired(
        tmp_path / "other", RECORD, machine=machine(1).model_copy(update={"guest": mixed})
    )
    refused = refusal(other, None)
    assert refused.index("BASE") < refused.index("(tcg)") < refused.index("NEW")
    assert refused.index("NEW") < refused.index("(kvm)")
    # Of two runs, each has its own kind.
    one = written(tmp_path / "one", machine=machine(1).model_copy(update={"guest": mixed}))
    assert judged(one, one).count("same") == 2


def test_what_makes_figures_doubtful_is_said(tmp_path: Path) -> None:
    base, new = cells(), cells()
    base[0].status = "error"
    base[0].disturbed = "load"
    base[1].status = "skipped"
    new[2].disturbed = new[3].disturbed = new[4].disturbed = "load"
    for one in new:
        one.cpu_control = "affinity"
    profiled = cell(key(1, profile="locks"), 1.0, status="error", disturbed="load")
    first = written(tmp_path / "one", [*base, profiled])
    other = written(tmp_path / "other", [*new, profiled], state="interrupted")
    (other / "cells" / "x.json").write_text("{")

    def kinds(warnings: list[str]) -> list[tuple[str, ...]]:
        """Of each warning the words that tell it from others."""
        words = r"hotplug|affinity|disturbed|no value|cannot be read|interrupted|BASE|NEW|\d of 6"
        return [tuple(re.findall(words, warning)) for warning in warnings]

    assert kinds(said(first, other)) == [
        ("hotplug", "affinity"),
        ("2 of 6", "BASE", "no value"),
        ("disturbed", "3 of 6", "NEW"),
        ("NEW", "cannot be read"),
        ("NEW", "interrupted"),
    ]
    assert kinds(said(other, first))[1:] == [
        ("disturbed", "3 of 6", "BASE"),
        ("2 of 6", "NEW", "no value"),
        ("BASE", "cannot be read"),
        ("BASE", "interrupted"),
    ]


def test_caches_that_one_side_kept_are_said(tmp_path: Path) -> None:
    """A container may not drop them."""
    kept, dropped, unknown = (
        written(tmp_path / str(how), [cell(c.key, 100.0, caches_dropped=how) for c in cells()])
        for how in (False, True, None)
    )
    assert any("caches were dropped" in text for text in judged(kept, dropped).warnings)
    for one in (kept, unknown):
        assert not any("caches were dropped" in text for text in judged(kept, one).warnings)


def test_guests_are_named_once(tmp_path: Path) -> None:
    def of(name: str, label: str) -> Path:
        guest = {"accelerator": "tcg", "label": label}
        return written(tmp_path / name, machine=machine(1).model_copy(update={"guest": guest}))

    def guests(*sides: Path) -> list[str]:
        return [warning for warning in said(*sides) if "guest" in warning]

    one, other = of("one", "two CPUs"), of("other", "four CPUs")
    assert guests(one, one) == ["measured in a guest (two CPUs)"]
    assert guests(one, other) == [
        "measured in a guest (two CPUs)", "measured in a guest (four CPUs)",
    ]  # fmt: skip


def test_sides_without_a_common_cell_are_refused_unless_something_broke(tmp_path: Path) -> None:
    one = written(tmp_path / "one")
    other = written(tmp_path / "other", cells(workload="MWCL"))
    told = refusal(one, other)
    assert "no cell in common" in told
    cut = written(tmp_path / "cut", cells(workload="MWCL"), planned_cells=7)
    found = judged(one, cut)
    assert [(h.kind, h.subject.workload) for h in found.health] == [("lost", "DRBL")]
    assert (found.missing_in_new, found.missing_in_base) == ([], ["MWCL ext4 ram buffered 1c 1s"])
    assert (found.tests, found.judgements) == (0, [])


def test_a_cell_file_that_cannot_be_read_is_a_lost_cell(tmp_path: Path) -> None:
    one = written(tmp_path / "one", cells() + cells(cores=2))
    new = written(tmp_path / "new", cells(), planned_cells=7)
    (new / "cells" / "x.json").write_text("{")
    assert [h.kind for h in judged(one, new).health] == ["lost"]


def test_what_mended_is_no_reason_to_judge_too_few_repetitions(tmp_path: Path) -> None:
    failed = cells()[:2]
    failed[0].status = "error"
    one, other = written(tmp_path / "one", failed), written(tmp_path / "other", cells()[:2])
    assert "too few repetitions" in refusal(one, other)
    found = judged(other, one)
    assert [h.kind for h in found.health] == ["broken"]
    assert {j.verdict for j in found.judgements} == {"undecided"}


def lock_run(directory: Path, waited: dict[str, int], **changes: Any) -> Path:
    """A run with a lock profile of 1000 ns, in which somebody waited for those locks."""
    wait = {
        f"1,{-(1 << 46) - n},_raw_spin_lock\n{name}\n": {"count": 1, "total": waited[name]}
        for n, name in enumerate(waited)
    }
    maps = {"type": "stats", "data": {"@wait": wait, "@active": 1000}}
    profile = {"output": json.dumps(maps)}
    own = cell(key(1, profile="locks"), 1.0, profiles={"locks": "locks.json.gz"}, **changes)
    written(directory, [*cells(), own])
    (directory / "locks.json.gz").write_bytes(gzip.compress(json.dumps(profile).encode()))
    return directory


RENAME = "d_move"


def test_shares_of_objects_are_summed_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load(lock_run(tmp_path / "a", {RENAME: 100}))
    assert shares(run) == {subject_of(key()): {"rename_lock": 0.1}}
    assert shares(load(lock_run(tmp_path / "b", {RENAME: 100}, status="error"))) == {}
    names = {name: Name(name, None, By.STACK) for name in ("a", "b")}
    suspects = [
        Suspect(names["a"], LOCK, "mutex", blocked=0.25),
        Suspect(names["b"], LOCK, "mutex", spinning=0.5),
        Suspect(names["a"], COUNTER, "mutex word", spinning=0.125),
    ]
    monkeypatch.setattr(locks, "triage", lambda path, cells: Triage(key(), suspects, {}, {}))
    assert shares(run) == {subject_of(key()): {"a": 0.375, "b": 0.5}}


def test_a_lock_that_is_new_is_found_between_runs(tmp_path: Path) -> None:
    base = lock_run(tmp_path / "base", {RENAME: 9})
    new = lock_run(tmp_path / "new", {RENAME: 50})
    (found,) = judged(base, new).locks
    assert (found.lock, found.share, found.base_share) == ("rename_lock", 0.05, 0.009)
    assert found.kind == "new bottleneck"
    (gone,) = judged(new, base).locks
    assert (gone.share, gone.base_share, gone.kind) == (0.009, 0.05, "less contention")


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (0.34, 0.6, "more contention"),
        (0.6, 0.34, "less contention"),
        (0.0, 0.05, "new bottleneck"),
        (0.0099, 0.05, "new bottleneck"),
        (0.01, 0.07, "more contention"),
        (0.01, 0.05, None),  # by less than 5% of the cores' time
        (0.0099, 0.0499, None),  # no bottleneck
        (0.6, 0.7, None),  # by less than a fifth of the larger share
    ],
)
def test_only_clear_changes_of_a_lock_are_told(
    before: float, after: float, kind: str | None
) -> None:
    point = subject_of(key())
    found = changed_locks({point: {"a": before}}, {point: {"a": after}})
    assert [(f.kind, f.base_share, f.share) for f in found] == (
        [(kind, before, after)] if kind else []
    )


def test_the_lock_that_changed_most_is_first_and_both_sides_need_a_profile() -> None:
    point, other = subject_of(key()), subject_of(key(cores=2))
    base = {point: {"a": 0.1, "gone": 0.3}, other: {}}
    new = {point: {"a": 0.2, "new\x1b": 0.9}}
    found = changed_locks(base, new)
    assert [f.base_share for f in found] == [0.0, 0.3, 0.1]
    assert "\x1b" not in found[0].lock
    assert changed_locks({}, new) == []


def test_a_lock_stands_beside_the_verdict_on_its_point(tmp_path: Path) -> None:
    base = lock_run(tmp_path / "base", {RENAME: 340})
    found = judged(base, lock_run(tmp_path / "new", {RENAME: 600}))
    told = "more contention: rename_lock, 34% -> 60% of the cores' time"
    (lock,) = found.locks
    own = next(j for j in found.judgements if j.metric == THROUGHPUT and j.subject == lock.subject)
    own.verdict = "same"
    assert found.explaining(own) == []
    assert found.other_locks == [lock]
    own.verdict, own.ratio = "slower", 0.5
    assert found.other_locks == []
    assert wording.remark(own, found.explaining(own)).startswith(told)
    assert told in answer.sentence(found)
    page = unescape(comparison_page.fragment(found))
    assert page.count(told) == 1
    shown = io.StringIO()
    Console(file=shown, width=300).print(console.render(found))
    assert shown.getvalue().count(told) == 2  # in the answer and in the row


def test_two_identical_sides_are_called_an_a_a_run(tmp_path: Path) -> None:
    same = judged(paired(tmp_path / "same", RECORD | {"new": "ext4"})).warnings
    assert any("the sides are identical (an A/A run)" in text for text in same)
    other_program = {"microbench": "1", "microbench of B": "2"}
    for name, record, versions in (
        ("sides", RECORD, {}),
        ("programs", RECORD | {"new": "ext4"}, {"versions": other_program}),
    ):
        found = judged(paired(tmp_path / name, record, **versions)).warnings
        assert not any("identical" in text for text in found)


def test_what_could_not_be_decided_is_not_an_absence_of_regressions(tmp_path: Path) -> None:
    """A halved throughput that load may explain: every format begins by saying so."""
    base = written(tmp_path / "base")
    slow = [
        cell(key(n), rate / 2, disturbed="a build", extra={"others_cpus": 0.9})
        for n, rate in enumerate(RATES, 1)
    ]
    comparison = judged(base, written(tmp_path / "new", slow), metrics=("throughput",))
    assert not comparison.regressed
    said = "could not judge whether there is a regression"
    shown = Console(file=io.StringIO(), width=200)
    shown.print(console.render(comparison))
    text = shown.file.getvalue()  # type: ignore[attr-defined]
    page = comparison_page.fragment(comparison)
    assert text.startswith("fscale: could not judge: 1 of 1 test undecided")
    for output in (mail.render(comparison), markdown.render(comparison)):
        assert said in output.splitlines()[0]
    assert said in page.splitlines()[0]
    assert said in ktap.render_comparison(comparison).splitlines()[1]
    assert f'value="{said}"' in junit.render_comparison(comparison)
    assert "<skipped" in junit.render_comparison(comparison)
    assert "-50" in junit.render_comparison(comparison)
    assert "<error" in junit.render_comparison(comparison, fail_undecided=True)
    assert "not ok" in ktap.render_comparison(comparison, fail_undecided=True)
    good = judged(base, written(tmp_path / "again", cells(), state="interrupted"))
    assert "found no regression" in markdown.render(good)
