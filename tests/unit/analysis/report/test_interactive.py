# SPDX-License-Identifier: GPL-2.0-only
"""What the page's interactive charts are drawn from."""

import json
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.diagnosis import flame
from fscale.analysis.members import Member
from fscale.analysis.reader import load
from fscale.analysis.report import build, interactive, repeat
from fscale.analysis.report.layout import content_security_policy
from fscale.analysis.report.section import Report
from tests.support.command_lines import refusal
from tests.support.hostile import good
from tests.support.synthetic import cell, cpus_of, grid, key, machine, write_run

pytestmark = pytest.mark.slow


def report(directory: Path, *args: Any, **changes: Any) -> Report:
    return Report((Member(load(write_run(directory, *args, **changes))),), directory)


def only_curve(directory: Path, cells: list[Any]) -> dict[str, Any]:
    (panel,) = interactive.data(report(directory, cells, workloads=("DRBL",)))["panels"]
    (curve,) = panel["curves"]
    return curve


def test_a_figure_is_its_median_and_spread(tmp_path: Path) -> None:
    rates = (1000.0, 1100.0, 1600.0)
    cells = [cell(key(i + 1, cores=2), rate, own_cpu_seconds=2.0) for i, rate in enumerate(rates)]
    cells[1] = cells[1].model_copy(update={"disturbed": "others"})
    (point,) = only_curve(tmp_path, cells)["points"]
    assert point["rate"] == [1100, 1000, 1600]
    assert point["cpu"] == [550, 500, 800]
    # Little's law: two workers, one operation under way each.
    assert point["latency"] == pytest.approx([2 / 1100, 2 / 1600, 2 / 1000], rel=1e-5)
    assert (point["n"], point["disturbed"], point["spread"]) == (3, 1, "min-max")
    assert "p50" not in point


def test_quantiles_of_latency_where_all_repetitions_have_them(tmp_path: Path) -> None:
    def with_latency(repetition: int, latency: Any, cores: int) -> Any:
        return cell(key(repetition, cores=cores), 1000, latency=latency)

    known = {"quantiles": {"50": 2000, "99": 9000}}
    cells = [with_latency(i, known, 1) for i in (1, 2)]
    cells += [with_latency(1, known, 2), with_latency(2, None, 2)]
    bad: list[Any] = [{"quantiles": {"50": "x"}}, {"quantiles": [1]}, {}, {"quantiles": {"50": -1}}]
    cells += [with_latency(1, one, 4 + i) for i, one in enumerate(bad)]
    one, *others = only_curve(tmp_path, cells)["points"]
    assert one["p50"] == [2e-6] * 3
    assert one["p99"] == [9e-6] * 3
    assert len(others) == 5
    assert not any("p50" in point for point in others)


def test_linear_scaling_knows_hardware_threads(tmp_path: Path) -> None:
    cells = [cell(key(cores=n), 100.0 * n) for n in (1, 2, 4)]
    found = report(
        tmp_path, cells, workloads=("DRBL",), machine=machine(4, topology=cpus_of(1, 2, 2))
    )
    (panel,) = interactive.data(found)["panels"]
    assert panel["ideal"]["factors"] == [[1, 1], [2, 2], [4, 2]]
    assert panel["ideal"]["start"]["rate"] == [100, 100, 100]
    assert (panel["physical"], panel["kinds"]) == (2, [])


def test_linear_scaling_knows_slower_cores(tmp_path: Path) -> None:
    cells = [cell(key(cores=n), 100.0 * n) for n in (1, 2, 4)]
    cpus = [c.model_copy(update={"max_mhz": 4000 - 1000 * (c.core // 2)}) for c in cpus_of(1, 4)]
    found = report(tmp_path, cells, workloads=("DRBL",), machine=machine(4, topology=cpus))
    (panel,) = interactive.data(found)["panels"]
    assert panel["ideal"]["factors"] == [[1, 1], [2, 2], [4, 2]]
    assert (panel["physical"], panel["kinds"]) == (4, [2])


def test_a_file_system_is_named_as_it_was_given(tmp_path: Path) -> None:
    command = "fscale run quick --fs './mine.toml,ext4:mkfs=-b {1024,4096}' --output results/x"
    run = load(write_run(tmp_path, [cell(key(), 1)], command=[command])).run
    for label, given in (
        ("mine", "./mine.toml"),
        ("ext4:mkfs=-b_4096", "'ext4:mkfs=-b 4096'"),
        ("xfs", "xfs"),
    ):
        again = repeat.command(run, key(filesystem=label))
        assert str(again).endswith(f"--workload DRBL --fs {given} --cores ")


@pytest.mark.parametrize(
    ("command", "again"),
    [
        (
            "/x/fscale/__main__.py run quick --fs ext4,xfs --cores 1,2 --output results/a",
            "bin/fscale run quick --output results/again --workload DRBL --fs ext4 --cores ",
        ),
        (
            "/x/fscale/__main__.py run 'my suite.toml' --repetitions 5 --workload=DRBL "
            "--mode=direct --output=a",
            "bin/fscale run 'my suite.toml' --repetitions 5 --output results/again --workload DRBL "
            "--fs ext4 --cores ",
        ),
        (
            "/x/fscale/__main__.py simulate --kernel sid --jobs 2 --output results/a",
            "bin/fscale simulate --kernel sid --output results/again --workload DRBL --fs ext4 "
            "--cores ",
        ),
        (
            "/x/fscale/__main__.py ab --base ext4 --new xfs --output results/a",
            "bin/fscale ab --base ext4 --new xfs --output results/again --workload DRBL --cores ",
        ),
        ("rm -rf /", None),
        ("an 'open quote", None),
    ],
)
def test_the_command_that_measures_a_point_again(
    tmp_path: Path, command: str, again: str | None
) -> None:
    run = report(tmp_path, [cell(key(), 1)], command=[command]).results.run
    found = repeat.command(run, key())
    assert found == again
    if found:
        assert refusal(shlex.split(f"{found}4")[1:]) is None


def test_the_command_says_options_and_media_of_a_point(tmp_path: Path) -> None:
    command = ["/x/fscale/__main__.py run quick --output results/a"]
    run = report(tmp_path, [cell(key(), 1)], command=command).results.run
    assert repeat.command(run, key(options={"size": 4096}), medium=True) == (
        "bin/fscale run quick --output results/again --workload DRBL --fs ext4 --mode buffered "
        "--media ram --option DRBL.size=4096 --cores "
    )
    assert "--media" not in str(repeat.command(run, key(medium="none"), medium=True))


def test_no_text_of_a_run_ends_the_script_that_holds_it(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><!--"
    cells = [cell(key(filesystem="<b>", options={"a": evil}), 1)]
    html = build(write_run(tmp_path, cells, workloads=("DRBL",))).read_text()
    assert evil not in html
    held = re.findall(r'<script type="application/json" id="(.*?)">(.*?)</script>', html)
    assert [name for name, _ in held] == ["chart-data", "chart-spec"]
    (panel,) = json.loads(held[0][1])["panels"]
    assert panel["name"] == f"DRBL a={evil}"
    assert panel["curves"][0]["name"] == "<b>"


def test_the_policy_names_every_script_and_no_eval() -> None:
    # echo -n 'a' | openssl dgst -sha256 -binary | base64
    said = content_security_policy("", ["a"])
    assert "script-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=';" in said
    assert "unsafe-eval" not in said
    assert said.startswith("default-src 'none';")


@pytest.mark.skipif(flame.tool() is None, reason="no program draws flame graphs")
def test_a_still_flame_graph_has_its_frames_and_nothing_that_acts() -> None:
    drawn = flame.svg(Counter({"kernel;a;b": 5_000_000, "kernel;a;c": 3_000_000}), "title")
    still = flame.still(drawn)
    assert re.search(r"<script|<style|\bon\w+=|>Search<", drawn)
    assert not re.search(r"<script|<style|\bon\w+=|>Search<", still)
    assert still.count("<title>") == drawn.count("<title>")


def test_profiled_points_below_the_most_cores_are_in_the_page_too(tmp_path: Path) -> None:
    html = build(good(tmp_path)).read_text()
    points = re.findall(r'<(details|template) data-diagnosis="([^"]*)"', html)
    assert [tag for tag, _ in points] == ["details", "template"]
    data = json.loads(re.findall(r'id="chart-data">(.*?)</script>', html)[0])
    (curve,) = data["panels"][0]["curves"]
    assert {name for _, name in points} == {point["point"] for point in curve["points"]}


def test_the_quick_suite_s_page_is_small(tmp_path: Path) -> None:
    cells = grid((1, 2), 3)
    page = build(write_run(tmp_path, cells))
    assert page.stat().st_size <= 3_000_000


@pytest.mark.parametrize("name", ["panel", "ratios"])
def test_no_mark_has_the_name_of_data(name: str) -> None:
    """Vega makes data of each mark that has a name, and draws nothing where two have the same."""

    def named(part: dict[str, Any]) -> list[str]:
        own = [part["name"]] if "name" in part else []
        facet = part.get("from", {}).get("facet", {})
        own += [facet["name"]] if facet else []
        return own + [
            n for key in ("data", "marks") for one in part.get(key, []) for n in named(one)
        ]

    found = named(interactive.specification(name))
    assert len(found) > 5
    assert [n for n in found if found.count(n) > 1] == []
