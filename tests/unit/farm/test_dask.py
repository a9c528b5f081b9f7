# SPDX-License-Identifier: GPL-2.0-only
"""Dask as an engine: real schedulers and workers, which die, have no space, or differ."""

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.farm.answer import Answer
from fscale.farm.dask import Dask, is_loopback, open_engine
from fscale.farm.objects import Cache, Objects
from fscale.farm.results import hosts, save_answer
from fscale.farm.task import Task
from fscale.model.errors import Exit, FscaleError
from fscale.model.results import CellKey
from fscale.model.store import Store
from tests.support import farm_program
from tests.support.build_once import build_once
from tests.support.farm import keys, task
from tests.support.farm_cluster import SECONDS, Cluster, certificate, ended_once, until

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    pem = build_once(tmp_path_factory, "certificate", certificate)
    with Cluster(tmp_path, pem) as started:
        yield started


def connected(cluster: Cluster, said: list[str]) -> Dask:
    security = distributed.security.Security(
        tls_ca_file=f"{cluster.pem}.cert",
        tls_client_cert=str(cluster.pem),
        tls_client_key=str(cluster.pem),
        require_encryption=True,
    )
    return Dask(cluster.address, security, said.append, farm_program.execute)


class Run:
    """A plan that is run on a cluster in a thread, as a command would."""

    def __init__(self, cluster: Cluster, tasks: list[Task], objects: Objects | None = None) -> None:
        self.said: list[str] = []
        self.store = Store(cluster.directory / "results")
        self.answers: list[Answer] = []
        self.error: BaseException | None = None
        self._cluster, self._tasks, self._objects = cluster, tasks, objects or Objects()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with connected(self._cluster, self.said) as engine:
                engine.submit(self._tasks, self._objects)
                for answer in engine.collect():
                    save_answer(self.store, answer)
                    self.answers.append(answer)
        except BaseException as error:
            self.error = error

    @property
    def warnings(self) -> list[str]:
        return [text for text in self.said if text.startswith("warning")]

    def result(self) -> dict[str, bytes]:
        """The files of the cells, after the last answer."""
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        if self.error:
            raise self.error
        cells = self.store.directory.glob("cells/*")
        return {path.name: path.read_bytes() for path in cells}


def of(numbers: list[CellKey], size: int = 1, **fields: object) -> list[Task]:
    """Tasks of some cells each."""
    return [task(*numbers[at : at + size], **fields) for at in range(0, len(numbers), size)]


def test_four_workers_return_what_one_does(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(os.urandom(9 << 20))
    objects = Objects()
    files = {"kernel": objects.add(tmp_path / "image")}
    tasks = of(keys(6), files=files)
    cluster.start_worker("one")
    alone = Run(cluster, tasks, objects).result()
    (tmp_path / "results").rename(tmp_path / "alone")
    for name in ("two", "three", "four"):
        cluster.start_worker(name)
    (tmp_path / "hold").touch()
    run = Run(cluster, of(keys(6), files=files, plan="1" * 16), objects)
    until(lambda: len(cluster.lines("begins")) == 6 + 4, "four workers have begun")
    (tmp_path / "hold").unlink()
    assert run.result() == alone
    assert len(alone) == 6
    assert set(hosts(run.store).values()) == {os.uname().nodename}
    for name in ("one", "two", "three", "four"):
        cache = Cache(tmp_path / name / "cache" / "fscale" / "objects")
        assert [path.name for path in cache.directory.iterdir()] == [files["kernel"]]


def test_a_worker_that_dies_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_worker("one", nanny=True)
    (tmp_path / "hold-2").touch()
    run = Run(cluster, [task(*keys(3))])
    until(lambda: 2 in cluster.lines("begins"), "the second cell has begun")
    cluster.kill("one")
    (tmp_path / "hold-2").unlink()
    cluster.start_worker("one")
    assert len(run.result()) == 3
    assert cluster.lines("begins") == [1, 2, 2, 3]  # what had ended before was kept
    ended_once(cluster, [1, 2, 3])


def test_another_worker_takes_the_tasks_of_a_dead_one(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_worker("one")
    cluster.start_worker("two")
    (tmp_path / "hold").touch()
    run = Run(cluster, of(keys(6)))
    until(lambda: len(cluster.lines("begins")) == 2, "both are busy")
    cluster.kill("one")
    (tmp_path / "hold").unlink()
    assert len(run.result()) == 6
    ended_once(cluster, range(1, 7))


def test_a_scheduler_that_is_started_again(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_worker("one")
    (tmp_path / "hold-3").touch()
    run = Run(cluster, of(keys(4)))
    until(lambda: 3 in cluster.lines("begins"), "the third cell has begun")
    cluster.kill("scheduler")
    cluster.kill("one")
    (tmp_path / "hold-3").unlink()
    cluster.start_scheduler()
    cluster.start_worker("one")
    assert len(run.result()) == 4
    ended_once(cluster, range(1, 5))


def test_a_worker_of_another_revision_is_refused(cluster: Cluster) -> None:
    cluster.start_worker("other", FSCALE_REVISION="another")
    run = Run(cluster, of(keys(3)))
    until(lambda: run.warnings, "it is refused")
    assert "another" in run.warnings[0]
    cluster.start_worker("one")
    assert len(run.result()) == 3
    assert not (cluster.directory / "other" / "cache" / "fscale" / "tasks").exists()


def test_a_boot_is_run_elsewhere_if_its_machine_is_why_it_failed(cluster: Cluster) -> None:
    cluster.start_worker("unfit", FARM_CODE=str(int(Exit.USAGE)))
    boots = [task(kind="guest", plan=f"{code}" * 16, work={"code": code}) for code in (0, 1)]
    run = Run(cluster, boots)
    until(lambda: run.warnings, "it is left")
    cluster.start_worker("one")
    run.result()
    found = {answer.task.work["code"]: answer for answer in run.answers}
    assert [found[code].header.code for code in (0, 1)] == [0, 1]
    assert [found[code].record for code in (0, 1)] == [b"{}", None]


@pytest.mark.root
@pytest.mark.parametrize("size", [0, 2 << 20], ids=["cells", "input files"])
def test_a_worker_without_space_is_left(cluster: Cluster, tmp_path: Path, size: int) -> None:
    full = tmp_path / "full" / "cache"
    full.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", full], check=True)
    try:
        (full / "other").write_bytes(bytes(40 << 10 if size else 64 << 10))
        (tmp_path / "image").write_bytes(os.urandom(size))
        objects = Objects()
        files = {"kernel": objects.add(tmp_path / "image")} if size else {}
        cluster.start_worker("full")
        run = Run(cluster, of(keys(3), files=files), objects)
        until(lambda: run.warnings, "it is left")
        cluster.start_worker("one")
        assert len(run.result()) == 3
    finally:
        cluster.kill("full")
        subprocess.run(["umount", full], check=True)
    assert "space" in run.warnings[0]
    ended_once(cluster, [1, 2, 3])


def test_a_worker_without_tls_is_refused() -> None:
    assert is_loopback("tcp://127.0.0.1:1") and is_loopback("tcp://[::1]:1")
    assert not is_loopback("tcp://192.0.2.1:1") and not is_loopback("tcp://node7:1")


class Cleartext:
    """A client whose workers are elsewhere; it must not ask them anything."""

    status = "running"

    def scheduler_info(self, n_workers: int) -> dict[str, dict[str, object]]:
        return {"workers": {"tcp://192.0.2.1:40001": {"nthreads": 1, "resources": {}}}}

    def run(self, *given: object, **options: object) -> None:
        raise AssertionError(given)


def test_a_worker_elsewhere_is_not_used_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fscale.farm.dask.Client", lambda *given, **options: Cleartext())
    monkeypatch.setattr("fscale.farm.dask.CONNECT_SECONDS", 0)
    monkeypatch.setattr("fscale.farm.dask.PATIENCE_SECONDS", 0)
    said: list[str] = []
    engine = Dask("tcp://127.0.0.1:8786", None, said.append)
    engine.submit([task(*keys(1))], Objects())
    with pytest.raises(FscaleError, match=r"192\.0\.2\.1"):
        list(engine.collect())
    assert sum("192.0.2.1" in text for text in said) == 1


@pytest.mark.parametrize(
    "on", ["dask://node7:8786", "tls://127.0.0.1:8786", "dask://", "dask://a", "dask://a:b"]
)
def test_no_unprotected_scheduler_beyond_this_machine(on: str) -> None:
    said: list[str] = []
    with pytest.raises(FscaleError):
        open_engine(on, said.append)


def test_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fscale.farm.dask.CONNECT_SECONDS", 0.5)
    with pytest.raises(FscaleError):
        Dask("tcp://127.0.0.1:9", None, [].append)


def test_what_is_no_answer_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fscale.farm.dask.MOST_WHOLE", 1 << 20)
    cluster.start_worker("one")
    for execute in (farm_program.huge, farm_program.pickled):
        monkeypatch.setattr(farm_program, "execute", execute)
        run = Run(cluster, of(keys(1)))
        until(lambda run=run: run.warnings or run.error, "it is refused")
        with (
            monkeypatch.context() as impatient,
            pytest.raises(FscaleError, match=run.warnings[0][-9:]),
        ):
            impatient.setattr("fscale.farm.dask.PATIENCE_SECONDS", 0)
            run.result()
        assert run.store.cells() == []
    monkeypatch.setattr(farm_program, "execute", farm_program.raising)
    run = Run(cluster, of(keys(1)))
    assert run.result() == {}
    (failed,) = run.answers
    assert "on purpose" in failed.header.text
