# SPDX-License-Identifier: GPL-2.0-only
"""What is said and drawn of simulated points."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.analysis import hot, plots
from fscale.analysis.curves import Curve
from fscale.analysis.style import LineStyle
from fscale.analysis.summary import Point, summarise
from fscale.cli import app
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from fscale.model.simulation import FunctionWait, FunctionWork, LineUser, Simulation
from tests.support import simulated_cells, synthetic
from tests.support.synthetic import machine, write_run


def user(name: str, reads: int, writes: int) -> LineUser:
    return LineUser(function=name, reads=reads, writes=writes, stall=1)


def point(simulated: bool = True, side: str | None = None) -> Point:
    key = synthetic.key(workload="DRBH", medium="brd", cores=4, side=side)
    shares = {"stall": 300, "queue": 100, "spin": 50, "idle": 150}
    window = simulated_cells.window(
        10, 1e-6, instructions=1000, cycles=1000, transfers={"dirty": 20}, **shares
    )
    users = user("reader", 3, 0), user("writer", 0, 2), user("both", 1, 1)
    lines = [
        simulated_cells.hot_line(thing, stall, *users)
        for thing, stall in (("rename_lock", 250), ("jiffies", 1))
    ]
    simulation = Simulation(seed=1, windows=[window], lines=lines, host_seconds=1)
    cell = synthetic.bare_cell(
        *(key, 1e7),
        ops=10,
        seconds=1e-6,
        counts={"instructions": 100.0},
        simulation=simulation if simulated else None,
    )
    (made,) = summarise([cell])
    return made


def simulation_of(made: Point) -> Simulation:
    (cell,) = made.cells
    assert cell.simulation is not None
    return cell.simulation


def test_a_point_is_told_with_the_lines_that_matter() -> None:
    assert hot.describe_points([point(), point(simulated=False), point(side="free-1")]) == [
        "DRBH ext4 x4 (simulated): 10,000,000/s; "
        "work 50%, transfers 20%, queueing 10%, spinning 5%, idle 15%",
        "     25.0%  rename_lock: reader, writer, both",
    ]


def test_a_simulated_run_is_told_in_words_and_as_json(tmp_path: Path) -> None:
    simulated = machine(4).model_copy(update={"guest": {"accelerator": "simulated"}})
    run = write_run(tmp_path / "run", point().cells, machine=simulated)
    first, *lines = hot.describe_points([point()])
    for width in (60, 80, 120, 200):
        done = CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["locks", str(run)])
        assert max(map(len, done.stdout.splitlines())) <= width
        said = " ".join(done.stdout.split())
        assert said.startswith("fscale: rename_lock limits DRBH (ext4) ")
        assert f"{first} DRBH on ext4 at 4 cores; contention on rename_lock: 25.0%" in said
        assert all(" ".join(line.split()) in said for line in lines)
    done = CliRunner().invoke(app, ["locks", str(run), "DRBH-ext4", "--json"])
    data = json.loads(done.stdout)
    assert data["points"][0]["cause"] == "rename_lock"
    (found,) = data["simulated"]
    assert (found["key"]["workload"], found["key"]["cores"]) == ("DRBH", 4)
    assert (found["ops_per_second"], found["shares"]["spinning"]) == (1e7, 0.05)
    assert found["counts_per_operation"] == {"instructions": 100.0}
    assert all(line["spinning"] == 0 for line in found["lines"])
    assert [(line["object"], line["share"]) for line in found["lines"]] == [
        ("rename_lock", 0.25),
        ("jiffies", 0.001),
    ]
    assert found["lines"][0]["users"][1] == {
        "function": "writer",
        "reads": 0,
        "writes": 2,
        "stall": 1,
        "words": 0,
    }


@pytest.mark.parametrize("given", [["--flames", "somewhere"], ["MWCL-"]])
def test_what_a_simulated_run_has_not_is_refused(given: list[str], tmp_path: Path) -> None:
    simulated = machine(4).model_copy(update={"guest": {"accelerator": "simulated"}})
    run = write_run(tmp_path / "run", point().cells, machine=simulated)
    done = CliRunner().invoke(app, ["locks", str(run), *given])
    assert isinstance(done.exception, FscaleError)


def test_spinning_for_a_lock_counts_for_its_line() -> None:
    made = point()
    simulation = simulation_of(made)
    simulation.lines[1].spin = 40
    assert [(one.share, one.spinning) for one in hot.hot(made)] == [(0.25, 0.0), (0.041, 0.04)]
    assert (
        hot.describe_points([made])[2]
        == "      4.1% (spinning 4.0%)  jiffies: reader, writer, both"
    )


@pytest.mark.parametrize(
    ("key", "found", "said", "shares"),
    [
        (
            "code",
            [
                FunctionWork(function="ext4_match", instructions=300),
                FunctionWork(function="memcmp", instructions=45),
            ],
            "share of the instructions: ext4_match 30%, memcmp 4%",
            [0.3, 0.045],
        ),
        # Those that no line stands out for as well; what is next to nothing is not.
        (
            "waits",
            [
                FunctionWait(function="memcpy", stall=150),
                FunctionWait(function="memcmp", stall=4),
            ],
            "waiting for cache lines, share of the cores' time: memcpy 15.0%",
            [0.15, 0.004],
        ),
    ],
)
def test_functions_are_told(
    key: str, found: list[FunctionWork | FunctionWait], said: str, shares: list[float]
) -> None:
    made = point()
    setattr(simulation_of(made), key, found)
    assert hot.describe_points([made])[-1] == f"    {said}"
    assert hot.as_json([made])[0][key] == [
        {"function": one.function, "share": share} for one, share in zip(found, shares, strict=True)
    ]


def test_a_lock_of_each_object_is_one_thing() -> None:
    """It is told before a line that is waited for more than each of them, but less than all."""
    made = point()
    simulation = simulation_of(made)
    for i in range(3):
        simulation.lines.append(
            simulation.lines[0].model_copy(
                update={
                    "object": f"memory at 0x{i}000: my_inode.lock, my_inode.{'abc'[i]}",
                    "stall": 40 + i,
                    "spin": 60,
                    "transfers": {"dirty": 2},
                }
            )
        )
    first, second, third = hot.hot(made)
    assert (first.object, first.lines) == ("my_inode.lock, my_inode.c", 3)
    assert (first.share, first.spinning) == (0.303, 0.18)
    assert first.transfers == {"dirty": 6}
    assert [(u.function, u.reads, u.writes, u.stall) for u in first.users] == [
        ("reader", 9, 0, 3),
        ("writer", 0, 6, 3),
        ("both", 3, 3, 3),
    ]
    assert (second.object, third.object) == ("rename_lock", "jiffies")
    assert hot.describe_points([made])[1] == (
        "     30.3% (spinning 18.0%)  my_inode.lock, my_inode.c (in 3 lines): reader, writer, both"
    )
    assert hot.as_json([made])[0]["lines"][0]["lines"] == 3


def test_readers_and_writers_are_told_apart() -> None:
    first, second = hot.hot(point())
    assert first.share == 0.25
    assert [u.function for u in first.readers] == ["reader", "both"]
    assert [u.function for u in first.writers] == ["writer", "both"]
    assert second.object == "jiffies"


def test_what_is_simulated_never_looks_measured() -> None:
    line = LineStyle("#000", "o", "-")
    measured = Curve("ext4", None, (point(simulated=False),), 1)
    simulated = Curve("ext4", None, (point(),), 1)
    assert (measured.name, simulated.name) == ("ext4", "ext4 (simulated)")
    assert Curve("ext4", "B", (point(side="B"),), 1).name == "ext4 (B, simulated)"
    styles = {
        plots.legend_key(line, side, curve.simulated).get_linestyle()
        for curve in (measured, simulated)
        for side in (None, "B")
    }
    assert len(styles) == 4


def test_the_speed_of_simulation_is_the_median_of_each_core_count() -> None:
    def at(cores: int, seconds: float) -> Cell:
        cell = simulated_cells.cell(1, 1000, 0)
        assert cell.simulation is not None
        windows = [
            w.model_copy(update={"instructions": 10**6, "cpu_seconds": seconds})
            for w in cell.simulation.windows
        ]
        return cell.model_copy(
            update={
                "key": cell.key.model_copy(update={"cores": cores}),
                "simulation": cell.simulation.model_copy(update={"windows": windows}),
            }
        )

    cells = [at(80, 0.5), at(1, 0.1), at(1, 0.05), at(1, 0.04), at(2, 0)]
    assert hot.speeds(cells) == {1: pytest.approx(20), 80: pytest.approx(2)}
