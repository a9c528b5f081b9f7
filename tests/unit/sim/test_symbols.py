# SPDX-License-Identifier: GPL-2.0-only
"""Names for addresses of a guest's kernel."""

import pytest

from fscale.model.errors import FscaleError
from fscale.sim import whatif
from fscale.sim.symbols import Symbols

KALLSYMS = """\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81234560 T d_lookup
ffffffff81234560 T __pfx_d_lookup
ffffffff81234600 t d_walk
ffffffff82a01040 D rename_lock
ffffffff82a01048 d after_it
ffffffff82a01048 d alias_of_it
ffffffffc0123000 t ext4_create\t[ext4]
ffffffffc0125000 b __key.1\t[ext4]
ffffffffc0125000 b counter\t[ext4]
"""
SYMBOLS = Symbols(KALLSYMS.splitlines())


def test_an_empty_key_of_a_lock_hides_no_object() -> None:
    assert SYMBOLS.object(0xFFFFFFFFC0125000) == "counter"


def test_an_instruction_is_in_the_function_before_it() -> None:
    assert SYMBOLS.function(0xFFFFFFFF81234560) == "d_lookup"
    assert SYMBOLS.function(0xFFFFFFFF812345FF) == "d_lookup"
    assert SYMBOLS.function(0xFFFFFFFF81234600) == "d_walk"
    assert SYMBOLS.function(0xFFFFFFFFC0123010) == "ext4_create"


def test_what_no_symbol_is_near_to_keeps_its_address() -> None:
    assert SYMBOLS.function(0xFFFFFFFFC9999999) == "0xffffffffc9999999"
    assert SYMBOLS.function(0x1000) == "0x1000"


def test_objects_are_named_by_what_their_place_is_for() -> None:
    assert SYMBOLS.object(0xFFFFFFFF82A01040) == "rename_lock"
    assert SYMBOLS.object(0xFFFFFFFF82A01044) == "rename_lock+0x4"
    assert SYMBOLS.object(0xFFFFFFFF82A01048) == "after_it"
    assert SYMBOLS.object(0xFFFF888000123440) == "memory at 0x123440"
    # A struct page has 64 bytes: the tenth is that of the page at 10 x 4096.
    assert SYMBOLS.object(0xFFFFEA0000000280) == "struct page (of the page at 0xa000)"


def test_what_is_free_is_all_lines_of_an_object_and_all_instructions_of_a_function() -> None:
    assert whatif.rule_of(SYMBOLS, "rename_lock") == "va:0xffffffff82a01040-0xffffffff82a01080"
    # It ends with the next symbol, two bytes into its second line.
    other = Symbols(["ffffffff82a01030 D wide", "ffffffff82a01042 D next"])
    assert whatif.rule_of(other, "wide") == "va:0xffffffff82a01000-0xffffffff82a01080"
    assert whatif.rule_of(SYMBOLS, "d_lookup") == "pc:0xffffffff81234560-0xffffffff81234600"
    assert whatif.rule_of(SYMBOLS, "ext4_create") == "pc:ext4:ext4_create:0x0-0x2000"
    with pytest.raises(FscaleError, match="no such symbol"):
        whatif.rule_of(SYMBOLS, "nothing")
    with pytest.raises(FscaleError, match="brd_devices: its address differs"):
        whatif.rule_of(Symbols(["ffffffffc0123000 b brd_devices\t[brd]"]), "brd_devices")


def test_what_each_cpu_has_of_its_own_is_named_with_the_cpu() -> None:
    own = ["0 A fixed_percpu_data", "40 A runqueues", "c40 A mcs_nodes", "1000 A __per_cpu_end"]
    cpus = [0xFFFF888100000000, 0xFFFF888100080000]
    symbols = Symbols([*KALLSYMS.splitlines(), *own], [cpus[1], cpus[0]])
    assert symbols.object(cpus[1] + 0x40) == "per-CPU runqueues (of CPU 0)"
    assert symbols.object(cpus[0] + 0xC48) == "per-CPU mcs_nodes+0x8 (of CPU 1)"
    assert symbols.object(cpus[0] + 0x1000) == "memory at 0x100001000"
    assert symbols.object(cpus[0] - 8) == "memory at 0xfffffff8"
    assert symbols.object(0xFFFFFFFF82A01040) == "rename_lock"
    assert Symbols(own).per_cpu(cpus[0] + 0x40) is None
