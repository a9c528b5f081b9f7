# SPDX-License-Identifier: GPL-2.0-only
"""The templates in docs/ci run as their services run them, on made-up measurements."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fscale.model.paths import ROOT, state_dir
from tests.support.cli_server import CliServer
from tests.support.files import write_program

pytestmark = pytest.mark.slow

CI = ROOT / "docs" / "ci"
FIXTURE = ROOT / "tests" / "fixtures" / "ci" / "fscale"


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words],
        cwd=directory, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_program(path, f"#!/bin/sh\n{text}\n")


@pytest.fixture(scope="module")
def server() -> CliServer:
    return CliServer(state_dir(), os.environ, "tests.fixtures.ci.stand_in:main")


@pytest.fixture
def environment(tmp_path: Path, server: CliServer) -> dict[str, str]:
    """What is not there in a test: packages, a mailer, fscale's own repository to clone."""
    tools = tmp_path / "tools"
    program(tools / "apt-get", "exit 0")
    program(tools / "make", 'echo "make $*" >>"$CI_TEST_LOG"')
    program(tools / "mail", '{ echo "mail $*"; cat; } >>"$CI_TEST_LOG"')
    program(tools / "date", 'if [ "$1" = +%Y-%m-%d ]; then echo "$CI_TEST_DATE"; fi')
    repository = tmp_path / "repository"
    (repository / "bin").mkdir(parents=True)
    shutil.copy(FIXTURE, repository / "bin" / "fscale")
    (repository / "bin" / "fscale").write_text(
        FIXTURE.read_text().replace("/usr/bin/env python3", str(ROOT / ".venv/bin/python"), 1)
    )
    git(repository, "init", "-q", "-b", "main")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "fscale")
    return {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "FSCALE": str(repository),
        "CI_TEST_ROOT": str(ROOT),
        "CI_TEST_LOG": str(tmp_path / "log"),
        "CI_TEST_SERVER": str(server.socket.fileno()),
    }


def source(directory: Path, rates: tuple[float, float]) -> tuple[Path, str]:
    """A tree under test with two commits of so different speed; the tree and the first commit."""
    directory.mkdir(parents=True)
    git(directory, "init", "-q")
    for rate in rates:
        (directory / "rate").write_text(str(rate))
        git(directory, "add", ".")
        git(directory, "commit", "--allow-empty", "-qm", f"rate {rate}")
    return directory, git(directory, "rev-parse", "HEAD~1")


def shell(script: str, directory: Path, environment: dict[str, str]) -> int:
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=directory, env=environment, check=False, pass_fds=[int(environment["CI_TEST_SERVER"])],
    )  # fmt: skip
    return done.returncode


def github(path: Path, directory: Path, base: str, environment: dict[str, str]) -> tuple[int, str]:
    """Run the steps of the one job against a commit; the exit code of the verdict, the summary."""
    workflow = yaml.safe_load(path.read_text())
    (job,) = workflow["jobs"].values()
    summary = directory.parent / "summary"
    ours = {"BASE": base, "GITHUB_STEP_SUMMARY": str(summary), "FSCALE": environment["FSCALE"]}
    codes: dict[str, int] = {}
    for step in job["steps"]:
        if "run" in step and (not any(codes.values()) or step.get("if") == "always()"):
            known = environment | workflow["env"] | ours
            codes[step["name"]] = shell(step["run"], directory, known)
    judged = codes.pop("Judge")
    assert codes == dict.fromkeys(("Tools", "Set up fscale", "Build both kernels", "Show"), 0)
    return judged, summary.read_text()


@pytest.mark.parametrize(("rate", "code"), [(1.0, 0), (0.9, 1)])
def test_a_kernel_tree_on_github(
    rate: float, code: int, tmp_path: Path, environment: dict[str, str]
) -> None:
    template = CI / "kernel-github.yml"
    place = tmp_path / "work"
    _, base = source(place / "linux", (1.0, rate))
    judged, summary = github(template, place, base, environment)
    assert judged == code
    assert "make -C fscale setup-vm" in Path(environment["CI_TEST_LOG"]).read_text()
    assert ("**slower**" in summary) == bool(code)
    assert (place / "fscale.xml").exists()


@pytest.mark.parametrize(("rate", "code"), [(1.0, 0), (0.9, 1)])
def test_a_gate_on_github(
    rate: float, code: int, tmp_path: Path, environment: dict[str, str]
) -> None:
    template = CI / "gate-github.yml"
    place = tmp_path / "work"
    tree, base = source(place / "linux", (1.0, rate))
    git(tree, "checkout", "-q", "-b", "later", base)
    git(tree, "commit", "--allow-empty", "-qm", "what the target has got since")
    later = git(tree, "rev-parse", "HEAD")
    git(tree, "checkout", "-q", "-")
    judged, summary = github(template, place, later, environment)
    assert judged == code
    assert summary.count("### fscale gate") == 2
    assert git(place / "base", "rev-parse", "HEAD") == base
    assert (place / "fscale-xfs.xml").exists()


@pytest.mark.parametrize("template", ["kernel-github.yml", "gate-github.yml"])
def test_a_stranger_gets_no_root_of_ours_and_no_secret(template: str) -> None:
    data: dict[str, Any] = yaml.safe_load((CI / template).read_text())
    (job,) = data["jobs"].values()
    assert job["runs-on"].startswith("ubuntu-")  # a machine that is thrown away
    assert data["permissions"] == {"contents": "read"}
    assert data[True] == "pull_request"  # YAML takes `on` for a truth value
    assert "secrets" not in (CI / template).read_text()


def gitlab(template: str, name: str, place: Path, base: str, environment: dict[str, str]) -> int:
    """The exit code of a job of a merge request."""
    data = yaml.safe_load((CI / template).read_text())
    script = "\n".join([*data[name]["before_script"], *data[name]["script"]])
    ours = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "FSCALE": environment["FSCALE"]}
    return shell(script, place, environment | data["variables"] | ours)


@pytest.mark.parametrize(("rate", "code"), [(1.0, 0), (0.9, 1)])
def test_a_module_on_gitlab(
    rate: float, code: int, tmp_path: Path, environment: dict[str, str]
) -> None:
    place, base = source(tmp_path / "builds" / "myfs", (1.0, rate))
    shutil.copy(ROOT / "tests/fixtures/trivialfs/trivialfs.toml", place / "myfs.toml")
    assert gitlab("module-gitlab.yml", "scalability", place, base, environment) == code
    assert (place / "fscale.xml").exists()
    assert ("**slower**" in (place / "fscale.md").read_text()) == bool(code)


@pytest.mark.parametrize(("rate", "code"), [(1.0, 0), (0.9, 1)])
def test_a_gate_on_gitlab(
    rate: float, code: int, tmp_path: Path, environment: dict[str, str]
) -> None:
    place, base = source(tmp_path / "builds" / "myfs", (1.0, rate))
    assert gitlab("gate-gitlab.yml", "gate", place, base, environment) == code
    assert (place / "fscale.xml").exists()
    assert (place / "fscale.md").read_text().startswith("### fscale gate")


def test_cron_sees_a_slow_decline(tmp_path: Path, environment: dict[str, str]) -> None:
    # The names of runs must not be taken for tags.
    results = tmp_path / "baseline last-good"
    log = Path(environment["CI_TEST_LOG"])
    codes, mails = [], []
    for night, rate in enumerate((1.0, 0.97, 0.94), 1):
        date = f"2026-01-0{night}"
        made_up = {
            "CI_TEST_DATE": date,
            "CI_TEST_RATE": str(rate),
            "CI_TEST_STARTED": f"{date}T00:00:00Z",
        }
        done = subprocess.run(
            [CI / "cron.sh", environment["FSCALE"], results, "a@b"],
            env=environment | made_up, check=False, pass_fds=[int(environment["CI_TEST_SERVER"])],
        )  # fmt: skip
        codes.append(done.returncode)
        mails.append(log.read_text().count("fscale: slower than baseline") if log.exists() else 0)
    assert codes == [0, 0, 1]
    assert mails == [0, 0, 1]
    assert "slower than last-good" not in log.read_text()  # 3% a night is within the margin
    tags = {
        path.parent.name[:10]: json.loads(path.read_text()) for path in results.glob("*/tags.json")
    }
    assert "baseline" in str(tags["2026-01-01"])
    assert "last-good" in str(tags["2026-01-03"])
    assert "last-good" not in str(tags["2026-01-01"])


@pytest.mark.parametrize(
    ("rate", "code", "found"), [(1.0, 0, "nothing is slower"), (0.9, 1, "slower or broken")]
)
def test_two_kernels_each_night(
    rate: float, code: int, found: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    base, _ = source(tmp_path / "base", (1.0, 1.0))
    new, _ = source(tmp_path / "upstream", (1.0, rate))
    git(tmp_path, "clone", "-q", str(new), "new")
    results = tmp_path / "results"
    for expected, more in ((code, []), (2, ["--no-such"])):
        done = subprocess.run(
            [CI / "two-kernels.sh", environment["FSCALE"], base, tmp_path / "new", "testbox",
             results, "a@b", "--reset-command", "reset testbox", *more],
            env=environment | {"CI_TEST_DATE": "2026-01-01"}, check=False,
            pass_fds=[int(environment["CI_TEST_SERVER"])],
        )  # fmt: skip
        assert done.returncode == expected
    (run,) = results.glob("2026-01-01-*")
    assert (run / "fscale.xml").exists()
    assert (run / "page.html").exists()
    assert (results / "history.sqlite").exists()
    log = Path(environment["CI_TEST_LOG"]).read_text()
    assert f"mail -s fscale: {found}: new on testbox a@b" in log
    assert "olddefconfig bzImage modules" in log
    assert "fscale: not measured: new on testbox" in log


def test_cron_passes_options_on(tmp_path: Path, environment: dict[str, str]) -> None:
    results = tmp_path / "results"
    for night in (1, 2):
        made_up = {
            "CI_TEST_DATE": f"2026-01-0{night}",
            "CI_TEST_RATE": "0.95" if night == 2 else "1.0",  # just the margin
            "CI_TEST_STARTED": f"2026-01-0{night}T00:00:00Z",
        }
        done = subprocess.run(
            [CI / "cron.sh", environment["FSCALE"], results, "a@b", "--fail-undecided"],
            env=environment | made_up, check=False, pass_fds=[int(environment["CI_TEST_SERVER"])],
        )  # fmt: skip
    assert done.returncode == 1
    assert "fscale: undecided against baseline" in Path(environment["CI_TEST_LOG"]).read_text()
