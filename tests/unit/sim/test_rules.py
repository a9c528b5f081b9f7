# SPDX-License-Identifier: GPL-2.0-only
"""What costs nothing is the same object in each boot, wherever a module lies."""

import pytest

from fscale.sim.rules import CODE, DATA, placed, rule
from fscale.sim.symbols import Symbols

LATER = 0x40000


def symbols(moved: int = 0) -> Symbols:
    base = 0xFFFFFFFFC0120000 + moved
    inside = [(0, "t", "grow"), (0x100, "t", "twice"), (0x180, "t", "twice"), (0x5020, "b", "sum")]
    return Symbols(
        [
            "ffffffff81000000 T add",
            "ffffffff82000010 D total",
            *(f"{base + at:x} {kind} {name}\t[ext4]" for at, kind, name in inside),
            f"{base + 0x9000:x} b sum\t[jbd2]",
        ]
    )


def test_the_kernel_keeps_its_place() -> None:
    told = rule(symbols(), DATA, range(0xFFFFFFFF82000010, 0xFFFFFFFF82000041))
    assert told == "va:0xffffffff82000000-0xffffffff82000080"  # whole lines
    assert placed(told, symbols(LATER)) == told
    assert rule(symbols(), CODE, range(0xFFFFFFFF81000003, 0xFFFFFFFF81000004)) == (
        "pc:0xffffffff81000003-0xffffffff81000004"
    )


def test_a_module_is_found_where_it_lies() -> None:
    told = rule(symbols(), DATA, range(0xFFFFFFFFC0125024, 0xFFFFFFFFC0125025))
    assert told == "va:ext4:sum:0x4-0x5"
    assert placed(told, symbols()) == "va:0xffffffffc0125000-0xffffffffc0125040"
    assert placed(told, symbols(LATER)) == "va:0xffffffffc0165000-0xffffffffc0165040"
    told = rule(symbols(), CODE, range(0xFFFFFFFFC0120012, 0xFFFFFFFFC0120013))
    assert told == "pc:ext4:grow:0x12-0x13"
    assert placed(told, symbols(LATER)) == "pc:0xffffffffc0160012-0xffffffffc0160013"


def test_no_words_hold_for_what_has_no_name_of_its_own() -> None:
    assert rule(symbols(), CODE, range(0xFFFFFFFFC0120101, 0xFFFFFFFFC0120102)) is None  # twice
    assert rule(symbols(), DATA, range(0xFFFF888000000000, 0xFFFF888000000001)) is None
    assert rule(symbols(), DATA, range(0xFFFFFFFFFF600000, 0xFFFFFFFFFF600001)) is None
    # It is loaded anew for each point.
    ram = Symbols(["ffffffffc0123000 b brd_devices\t[brd]"])
    assert rule(ram, DATA, range(0xFFFFFFFFC0123000, 0xFFFFFFFFC0123001)) is None


def test_what_a_boot_lacks_is_said() -> None:
    with pytest.raises(KeyError, match=r"nothing \[ext4\]"):
        placed("va:ext4:nothing:0x0-0x4", symbols())
    with pytest.raises(ValueError, match="is not a rule"):
        placed("pa:0x0-0x40", symbols())
