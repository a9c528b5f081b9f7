# SPDX-License-Identifier: GPL-2.0-only
"""What a comparison takes, said before anything runs; and the README's way to compare."""

import math
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.repetitions import minimum_repetitions, shortage
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.apps.adapter import loads
from fscale.cli import app
from fscale.model import catalogue, paths
from fscale.model.bench import Descriptor
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey
from fscale.runner import plan
from fscale.runner.selection import filesystem_of
from tests.support import bench
from tests.support.runner import fake_bench
from tests.support.synthetic import BACKGROUND, PAPER, cell, descriptor, write_run

SUITES = sorted(path.stem for path in paths.SUITES.glob("*.toml"))
COMPARABLE = {"regression", "profile-cost"}


def planned(name: str, counts: list[int]) -> list[CellKey]:
    suite = catalogue.load_suite(Path(name))
    known: dict[str, Descriptor] = {w: descriptor(w) for w in (*PAPER, *BACKGROUND, "DWRL")}
    others = {workload for workload in bench.WORKLOADS if "_" in workload}
    known |= {w: descriptor("MWCM").model_copy(update={"id": w}) for w in others - {*BACKGROUND}}
    known |= {load.descriptor.id: load.descriptor for load in loads()}
    if suite.workloads == "all":
        known = {w: known[w] for w in (*PAPER, *BACKGROUND)}
    filesystems = {fs: catalogue.load_filesystem(fs) for fs in suite.filesystems}
    media = {medium: catalogue.load_medium(medium) for medium in suite.media}
    return plan.make_keys(suite, known, media, filesystems, counts, seed=1)


def measured(directory: Path, keys: list[CellKey], mwcm: float = 1.0) -> Path:
    """A run of these cells in which MWCM runs at that share of its speed."""

    def rate(key: CellKey) -> float:
        noise = math.exp(random.Random(f"{directory} {key.id}").gauss(0, 0.02))
        return 1e5 * key.cores * noise * (mwcm if key.workload == "MWCM" else 1.0)

    return write_run(directory, [cell(key, rate(key)) for key in keys])


@pytest.mark.parametrize("name", SUITES)
def test_what_a_suite_lacks_is_what_compare_refuses(tmp_path: Path, name: str) -> None:
    keys = [key for key in planned(name, [1, 2]) if key.profile is None]
    lacking = shortage(keys, Settings())
    assert (lacking is None) == (name in COMPARABLE)
    if name not in ("smoke", "triage", "apps"):
        return  # thousands of cells would say the same
    run = measured(tmp_path / "run", keys)
    assert lacking is not None
    with pytest.raises(FscaleError, match="too few") as refused:
        compare(open_sides(run, run), Settings())
    assert f"among {lacking.tests} tests" in str(refused.value)
    assert f"--repetitions {lacking.needed}" in str(refused.value)


@pytest.mark.parametrize("counts", [[1], [1, 2], [1, 2, 4], [2**n for n in range(17)]])
def test_the_suite_for_regressions_has_a_repetition_to_spare(counts: list[int]) -> None:
    keys = planned("regression", counts)
    assert shortage(keys, Settings()) is None
    assert shortage([key for key in keys if key.repetition < 11], Settings()) is None


@pytest.mark.slow
def test_before_and_after_as_the_readme_says(tmp_path: Path) -> None:
    readme = (paths.ROOT / "README.md").read_text()
    for side in ("before", "after"):
        assert f"`bin/fscale run regression --output results/{side}`" in readme
    assert "`bin/fscale compare results/before results/after`" in readme
    keys = planned("regression", [1, 2])
    before = measured(tmp_path / "before", keys)
    for share, code in ((1.0, 0), (0.8, 1)):
        after = measured(tmp_path / f"after-{share}", keys, share)
        done = CliRunner().invoke(app, ["compare", str(before), str(after)])
        assert done.exit_code == code, done.output


def test_profiled_cells_are_no_repetitions_of_a_comparison() -> None:
    keys = planned("regression", [1])
    profiled = [key.model_copy(update={"profile": "locks"}) for key in keys]
    few = [key for key in keys if key.repetition <= 2]
    lacking = shortage(few + profiled, Settings())
    assert lacking is not None
    assert (lacking.repetitions, lacking.tests) == (2, 48)
    assert lacking.needed == minimum_repetitions(Settings(), 48, interleaved=False) == 8


@pytest.mark.slow
def test_run_and_ab_say_it_before_they_measure(tmp_path: Path) -> None:
    there = filesystem_of(tmp_path)
    given = ["--workload", "DRBL,MWCL", "--cores", "1", "--dir", str(tmp_path), "--dry-run"]
    given += ["--binary", str(fake_bench(tmp_path)), "--output", str(tmp_path / "out")]
    for repetitions, said in ((5, "too few repetitions for `fscale compare` (5)"), (6, None)):
        done = CliRunner().invoke(
            app, ["run", "quick", *given, "--repetitions", str(repetitions)], catch_exceptions=False
        )
        assert done.exit_code == 0
        assert (said in done.stderr) if said else "too few" not in done.stderr
        assert "(--repetitions 6" in done.stderr or not said
    sides = ["--base", there, "--new", there, "--suite", "quick", "--whole"]
    done = CliRunner().invoke(app, ["ab", *sides, *given, "--repetitions", "4"])
    assert isinstance(done.exception, FscaleError)
    assert "4 repetitions per side are too few" in str(done.exception)
    assert "give --repetitions 6" in str(done.exception)
    done = CliRunner().invoke(app, ["ab", *sides, *given, "--repetitions", "6"])
    assert done.exit_code == 0
