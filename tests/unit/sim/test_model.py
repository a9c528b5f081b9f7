# SPDX-License-Identifier: GPL-2.0-only
"""The simulator's model on traces with known answers, under AddressSanitizer and UBSan."""

import json
import os
import subprocess
from functools import cache

import pytest

from fscale.model.paths import ROOT

pytestmark = pytest.mark.slow

SIM = ROOT / "fscale/sim"
BUILD = ROOT / "build" / "sim"
TESTS = sorted(path.stem for path in (SIM / "tests").glob("test_*.c"))


@cache
def build(target):
    done = subprocess.run(
        ["make", "-C", str(SIM), "-j2", target], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", TESTS)
def test_unit(name):
    build("tests")
    done = subprocess.run(
        [BUILD / "san" / name], check=False, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr


def test_window_is_json(tmp_path):
    build("tests")
    line = tmp_path / "window.jsonl"
    subprocess.run([BUILD / "san" / "test_access", line], check=True)
    window = json.loads(line.read_text())
    assert window["type"] == "window"
    assert window["ops"] == sum(vcpu["ops"] for vcpu in window["vcpus"]) == 3
    assert window["ns"] == window["cycles"] / window["active"]  # at 1 GHz
    assert [line["pa"] for line in window["lines"]] == ["0x100000"]
    assert sum(pc["transfers"] for pc in window["pcs"]) == 4


def test_all_are_there():
    assert set(TESTS) >= {
        "test_access",
        "test_coherence",
        "test_hot",
        "test_instruction",
        "test_parameters",
        "test_schedule",
        "test_slab",
    }


def test_preloaded_it_does_nothing_without_qemu():
    """QEMU's own starter, such as env, has it too."""
    build("all")
    env = {**os.environ, "LD_PRELOAD": str(BUILD / "fscale-sim.so")}
    argv = ["sh", "-c", "sleep 0.01; echo $((1 + 1))"]
    done = subprocess.run(argv, check=False, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


def test_nothing_but_the_plugin_is_left_to_qemu():
    """Symbols that are missing in the plugin are QEMU's, its GLib's, or the C library's."""
    build("all")
    plugin = BUILD / "fscale-sim.so"
    shown = subprocess.run(
        ["nm", "-D", "--undefined-only", plugin], check=True, capture_output=True, text=True
    )
    missing = [line.split()[-1] for line in shown.stdout.splitlines()]
    ours = [name for name in missing if "@" not in name and not name.startswith("_")]
    assert ours
    assert all(name.startswith(("qemu_plugin_", "g_byte_array_")) for name in ours), ours
