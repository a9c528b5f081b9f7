# SPDX-License-Identifier: GPL-2.0-only
"""The gate: what an operation takes on two sides, judged by counts."""

import itertools
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from fscale.analysis.compare import answer, counted, wording
from fscale.analysis.compare.model import Comparison
from fscale.analysis.compare.pairs import match_cells
from fscale.analysis.compare.sides import sides_of
from fscale.analysis.formats import junit, ktap, mail, markdown
from fscale.analysis.reader import load
from fscale.model.errors import Exit, FscaleError
from fscale.model.results import Cell
from fscale.model.simulation import FunctionWork
from fscale.model.variant import parse
from fscale.sim.sweep import Sweep, of_side
from tests.support.simulated_cells import OPS, boots, cell, line
from tests.support.synthetic import machine, write_run


def verdicts(base: list[Cell], new: list[Cell]) -> dict[str, str]:
    return {j.metric.removeprefix("count:"): j.verdict for j in counted.judge(base, new)}


def test_what_is_the_same_is_the_same() -> None:
    same = {"instructions": "same", "shared-lines": "same"}
    assert verdicts(boots(9000, 0.02), boots(9000, 0.03, seed=2)) == same
    assert verdicts(boots(9000, 40), boots(9000, 40, seed=2)) == same


def test_reads_of_lines_that_nobody_writes_are_not_shared_lines() -> None:
    new = boots(9000, 0.02, seed=2)
    for window in (window for one in new if one.simulation for window in one.simulation.windows):
        window.transfers["unwritten"] = 3 * OPS
    assert verdicts(boots(9000, 0.02), new)["shared-lines"] == "same"
    for window in (window for one in new if one.simulation for window in one.simulation.windows):
        window.transfers["clean"] = 3 * OPS
    assert verdicts(boots(9000, 0.02), new)["shared-lines"] == "newly shared"


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.002, 0.02, 0.2])
def test_no_false_alarm_in_a_thousand(noise: float) -> None:
    alarms = 0
    for seed in range(1000):
        sides = (boots(9000, 20, noise=noise, seed=2 * seed + n) for n in (0, 1))
        alarms += any(judgement.worse for judgement in counted.judge(*sides))
    assert alarms <= 2


def test_two_percent_more_work_is_found_and_a_little_less_is_no_failure() -> None:
    assert verdicts(boots(9000, 0.02), boots(9200, 0.02, seed=2))["instructions"] == "more"
    less = counted.judge(boots(9200, 0.02), boots(9000, 0.02, seed=2))[0]
    assert (less.verdict, less.worse) == ("less", False)


def test_the_functions_that_do_more_are_named() -> None:
    def with_code(cells: list[Cell], **work: float) -> list[Cell]:
        for one in cells:
            assert one.simulation is not None
            one.simulation.code = [
                FunctionWork(function=name, instructions=round(n * OPS * 5))
                for name, n in work.items()
            ]
        return cells

    base = with_code(boots(9000, 0.02), vfs_read=100, find_block=800, kept=50)
    new = with_code(boots(9200, 0.02, seed=2), vfs_read=120.6, find_block_common=1000, kept=50.2)
    found = counted.judge(base, new)[0]
    assert found.reason == "find_block_common +1000, find_block -800, vfs_read +21"
    assert found.verdict == "more"
    assert (
        counted.judge(new, base)[0].reason
        == "find_block_common -1000, find_block +800, vfs_read -21"
    )


def test_noise_of_one_side_hides_no_more_than_itself() -> None:
    noisy = boots(9000, 0.02, noise=0.05)
    assert verdicts(noisy, boots(9200, 0.02, seed=2))["instructions"] == "same"
    assert verdicts(noisy, boots(20000, 0.02, seed=2))["instructions"] == "more"


def test_an_operation_that_begins_to_share_a_line_fails_and_the_line_is_named() -> None:
    planted = line("memory at 0x123440", 0.75, "lanefs_handle_start")
    old = line("jiffies", 0.01, "tick_sched_do_timer")
    shared = counted.judge(boots(9000, 0.02, old), boots(9005, 0.77, old, planted, seed=2))[1]
    assert (shared.verdict, shared.worse) == ("newly shared", True)
    assert wording.change_of(shared) == "x39.4"
    assert "lanefs_handle_start (writes)" in shared.reason
    assert "0.75 more per operation" in shared.reason
    assert "jiffies" not in shared.reason


def test_one_more_line_among_many_is_found_by_its_name() -> None:
    many = line("inode_hash_lock", 18, "_raw_spin_lock")
    base = boots(9000, 18.9, many, noise=0.02)
    plant = line("lanefs_planted, lanefs_inode_cache", 1, "lanefs_handle_start")
    shared = counted.judge(base, boots(9000, 19.9, many, plant, noise=0.02, seed=2))[1]
    assert shared.verdict == "newly shared"
    assert shared.reason.startswith("lanefs_planted, lanefs_inode_cache, 1.00 more")
    assert shared.reason.endswith("grew by less than the boots of a side differ")
    assert wording.change_of(shared) == "-"
    assert "lanefs_handle_start (writes)" in shared.reason


MANY = line("inode_hash_lock", 18, "_raw_spin_lock", words=20)


@pytest.mark.parametrize(
    ("lines", "words", "count", "verdict", "sharing"),
    [
        (2, 0, 3, "same", "only this layout"),
        (1, 0, 4, "same", "only this layout"),
        (1, 0, 5, "newly shared", "only this layout"),
        (1, 1, 3, "newly shared", "same word"),
        (1, 1, 5, "newly shared", "same word"),
        (1, None, 3, "same", None),
        (1, None, 5, "newly shared", None),
        (2, None, 3, "newly shared", None),
    ],
)
def test_on_the_heap_a_layout_needs_five_boots_and_a_shared_word_does_not(
    lines: int, words: int | None, count: int, verdict: str, sharing: str | None
) -> None:
    # Where an object lies on the heap may add a line in every boot of one side by chance.
    heap = line("memory at 0x1240", lines, "lanefs_handle_start", words=words or 0)
    before, after = (20, 20 + words) if words is not None else (None, None)
    base = boots(9000, 18.9, MANY, noise=0.02, count=count, words=before)
    new = boots(9000, 18.9 + lines, heap, MANY, noise=0.02, seed=2, count=count, words=after)
    shared = counted.judge(base, new)[1]
    assert (shared.verdict, shared.sharing) == (verdict, sharing)
    assert "by lanefs_handle_start (writes)" in shared.reason
    assert ("do not tell it from chance" in shared.reason) == (verdict == "same")


@pytest.mark.parametrize(("words", "alarms"), [(None, 1), (20, 0)])
def test_three_boots_never_take_a_place_that_some_have_for_a_change(
    words: int | None, alarms: int
) -> None:
    # Each boot of one kernel has either place: two lines more, or none.
    def side(places: tuple[int, ...]) -> list[Cell]:
        return [
            cell(n, 9000, 18 + more, (MANY, line("memory at 0x40", more, "step")), words=words)
            for n, more in enumerate(places, 1)
        ]

    ways = list(itertools.product((0, 2), repeat=3))
    found = [counted.judge(side(one), side(other))[1] for one in ways for other in ways]
    assert len(found) == 64
    assert sum(judgement.worse for judgement in found) == alarms


@pytest.mark.parametrize("words", [20, 28])
def test_a_sum_that_grows_by_the_heaps_layout_alone_needs_five_boots(words: int) -> None:
    # The same functions and members as before: a lock lies across two lines now.
    lock = "memory at 0x1c0: xfs_inode.i_vnode.i_rwsem"

    def side(lines: float, words: int, seed: int, count: int) -> list[Cell]:
        many = line(lock, lines, "rwsem_down_write_slowpath", words=words)
        return boots(9000, lines, many, seed=seed, count=count, words=words)

    for count in (3, 5):
        found = counted.judge(side(20, 20, 1, count), side(28, words, 2, count))[1]
        layout = words == 20
        assert found.sharing == ("only this layout" if layout else "same word")
        assert found.verdict == ("same" if layout and count == 3 else "more")
        assert lock in found.reason


@pytest.mark.parametrize(
    ("thing", "what"),
    [
        ("lanefs_inodes_free", "words of one object"),
        ("lanefs_planted, lanefs_inode_cache", "different objects"),
        ("memory at 0x40: inode.i_flags, inode.i_count", "members of one object"),
        ("memory at 0x40: inode.i_flags, another inode", "different objects"),
        ("memory at 0x40: inode.i_flags", "words of one object"),
        ("memory at 0x40", "words"),
    ],
)
def test_a_layout_says_what_lies_together(thing: str, what: str) -> None:
    false = line(thing, 1, "lanefs_inode_alloc")
    base = boots(9000, 18.9, MANY, count=5, words=20)
    found = counted.judge(base, boots(9000, 19.9, false, MANY, seed=2, count=5, words=20))[1]
    assert (found.verdict, found.worse) == ("newly shared", True)
    assert f"only this layout: no further word is shared, so the reason is how {what} lie" in (
        found.reason
    )


def test_of_static_objects_three_boots_are_enough_for_a_layout() -> None:
    # Each boot has them at the same place.
    false = line("lanefs_inodes_free", 1, "lanefs_inode_alloc")
    base = boots(9000, 18.9, MANY, words=20)
    found = counted.judge(base, boots(9000, 19.9, false, MANY, seed=2, words=20))[1]
    assert (found.verdict, found.sharing) == ("newly shared", "only this layout")
    summed = counted.judge(
        boots(9000, 18, line("lanefs_inodes_free", 18, "lanefs_inode_alloc"), words=20),
        boots(9000, 28, line("lanefs_inodes_free", 28, "lanefs_inode_alloc"), seed=2, words=20),
    )[1]
    assert (summed.verdict, summed.sharing) == ("more", "only this layout")


def test_what_newly_lies_beside_a_shared_object_is_only_this_layout() -> None:
    alone = line("total_hits", 1, "count", words=1)
    beside = line("total_hits, settings", 2, "count")
    beside.words = alone.words
    beside.users[0].words = alone.users[0].words
    beside.users += line("settings", 1, "read_settings").users
    found = counted.judge(
        boots(9000, 18.9, MANY, alone, words=21),
        boots(9000, 19.9, MANY, beside, seed=2, words=21),
    )[1]
    assert (found.verdict, found.sharing) == ("newly shared", "only this layout")
    assert "how different objects lie" in found.reason


def test_a_new_word_in_a_new_line_is_not_its_victims_fault() -> None:
    # A counter is new; a function that only reads what lies beside it takes the line as well.
    counter = line("memory at 0x40: sb.s_flags, sb.s_count", 1, "lanefs_count", words=1)
    counter.users += line("memory at 0x40", 1, "lanefs_read").users
    found = counted.judge(
        boots(9000, 18.9, MANY, words=20), boots(9000, 20.9, counter, MANY, seed=2, words=21)
    )[1]
    assert (found.verdict, found.sharing) == ("newly shared", "same word")


def test_of_the_heap_no_name_is_new() -> None:
    # One side's kernel has no types, or what is touched often enough to be named differs.
    plain = line("memory at 0x40: ext4_inode_cache+0x80", 0.8, "seek")
    named = line("memory at 0x40: ext4_inode_info.i_flags, ext4_inode_info.i_state", 0.8, "seek")
    assert verdicts(boots(100, 21, plain), boots(100, 21, named, seed=11))["shared-lines"] == "same"
    # Where it takes more the line is named by what lies there.
    more = line("memory at 0x80: ext4_inode_info.i_flags", 20.8, "seek")
    found = counted.judge(boots(100, 21, plain), boots(100, 41, more, seed=11))[1]
    assert (
        found.reason
        == "memory at 0x80: ext4_inode_info.i_flags, 20.80 more per operation, by seek (writes)"
    )


def test_another_name_for_what_was_shared_is_not_new() -> None:
    old = line("memory at 0x1240", 2, "find_get_page")
    renamed = line("memory at 0x1240", 2, "filemap_get_folio")
    for seed in range(50):
        base = boots(9000, 19, old, noise=0.01, seed=2 * seed)
        assert (
            counted.judge(base, boots(9000, 19, renamed, noise=0.01, seed=2 * seed + 1))[1].verdict
            == "same"
        )


def test_a_line_that_comes_and_goes_with_the_boot_is_not_new() -> None:
    def side(*moves: float) -> list[Cell]:
        return [
            cell(n, 9000, 10 + m, (line("memory at 0x1240", m, "evict"),))
            for n, m in enumerate(moves, 1)
        ]

    assert counted.judge(side(0.16, 0.1, 0.2), side(0.9, 0.58, 0.65))[1].verdict == "same"


def compared(tmp_path: Path, base: list[Cell], new: list[Cell]) -> Comparison:
    sides = []
    for name, cells in (("base", base), ("new", new)):
        simulated = machine(4).model_copy(update={"guest": {"accelerator": "simulated"}})
        fs = sorted({c.key.filesystem for c in cells})
        directory = write_run(
            tmp_path / name, cells, workloads=["MWCL"], filesystems=fs, machine=simulated
        )
        found = load(directory)
        sides.append((found, found.cells))
    both = sides_of(*sides, ("old|x", "new"))
    return counted.compare(both, match_cells(both.base_cells, both.new_cells))


def test_a_point_that_breaks_fails_and_one_that_was_broken_does_not(tmp_path: Path) -> None:
    broken = [cell(n, 0, 0, status="error") for n in (1, 2, 3)]
    found = compared(tmp_path / "a", boots(9000, 1), broken)
    assert [(h.kind, h.reason) for h in found.health] == [("broken", "mount failed: no")]
    assert found.regressed and not found.judgements
    two = [
        one.model_copy(
            update={"key": (key := one.key.model_copy(update={"cores": 8})), "id": key.id}
        )
        for one in broken
    ]
    found = compared(tmp_path / "b", [*boots(9000, 1), *two], boots(9000, 1))
    assert not found.regressed
    assert any("mount failed: no" in warning for warning in found.warnings)


def test_a_point_that_one_side_lacks_is_missing(tmp_path: Path) -> None:
    eight = [
        c.model_copy(update={"key": (key := c.key.model_copy(update={"cores": 8})), "id": key.id})
        for c in boots(9000, 1)
    ]
    found = compared(tmp_path, [*boots(9000, 1), *eight], boots(9000, 1))
    assert (len(found.missing_in_new), found.missing_in_base) == (1, [])
    assert "8c" in found.missing_in_new[0]


def test_two_file_systems_are_a_pair() -> None:
    other = [cell(n, 9000, 1, fs="lanefs") for n in (1, 2, 3)]
    assert len(counted.judge(boots(9000, 1), other)) == 2


def test_too_few_boots_are_refused() -> None:
    with pytest.raises(FscaleError, match="give --seeds 3"):
        counted.judge(boots(9000, 1)[:2], boots(9000, 1))


def test_outputs_say_what_failed(tmp_path: Path) -> None:
    found = compared(tmp_path, boots(9000, 0.02), boots(9500, 2, seed=2))
    root = ET.fromstring(junit.render_comparison(found))
    assert [len(case.findall("failure")) for case in root.iter("testcase")] == [1, 1]
    failures = [str(f.get("message")) for f in root.iter("failure")]
    assert all(j.reason in text for j, text in zip(found.judgements, failures, strict=True))
    table = markdown.render(found)
    assert "**newly shared**" in table
    assert "simulated" in table
    words = compared(
        tmp_path / "words", boots(9000, 0.02, words=0), boots(9000, 2, seed=2, words=2)
    )
    for text in (markdown.render(words), junit.render_comparison(words)):
        assert "same word: more words are shared, whatever" in " ".join(text.split())
    assert '"sharing":"same word"' in words.model_dump_json(by_alias=True)
    assert "(only this layout)" in answer.sentence(
        compared(
            tmp_path / "layout",
            boots(9000, 0.02, words=0, count=5),
            boots(9000, 2, seed=2, words=0, count=5),
        )
    )
    assert wording.headline(found) == "1 newly shared, 1 more, 0 less, 0 same"
    assert ktap.render_comparison(found).count("\nnot ok") == 2
    assert "newly shared" in mail.render(found)
    again = Comparison.model_validate_json(found.model_dump_json(by_alias=True))
    assert (again, again.policy, again.regressed) == (found, "counted", True)
    # A judge of rates says nothing of them.
    assert "false discovery" not in mail.render(found)


def test_a_side_is_what_its_text_says(tmp_path: Path) -> None:
    module = tmp_path / "a.ko"
    module.touch()
    sweep = Sweep(filesystems=[], workloads=[], cores=[4], output=tmp_path)
    text = f"ext4:mount=data=journal,nobarrier:mkfs=-O ^has_journal:kernel=6.12:module={module}"
    made = of_side(parse(text), sweep)
    assert list(made.filesystems) == ["ext4:mount=data=journal,nobarrier:mkfs=-O ^has_journal"]
    assert (made.kernel, made.modules) == ("6.12", (module,))
    assert of_side(parse("xfs"), sweep).kernel == "bookworm"
    image = of_side(parse("xfs:kernel=bzImage:modules=/lib/m"), sweep)
    assert (image.kernel, image.kernel_modules) == ("bzImage", Path("/lib/m"))
    with pytest.raises(FscaleError, match="does not exist"):
        of_side(parse("ext4:module=/no/such.ko"), sweep)


@pytest.mark.parametrize("new_breaks", [True, False])
def test_nothing_to_judge_is_a_mistake(tmp_path: Path, new_breaks: bool) -> None:
    broken = [cell(n, 0, 0, status="error") for n in (1, 2, 3)]
    with pytest.raises(FscaleError, match="no point could be judged") as raised:
        compared(tmp_path, broken, broken if new_breaks else boots(9000, 1))
    assert raised.value.code == Exit.USAGE
