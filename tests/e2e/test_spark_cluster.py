"""A standalone Spark cluster judges a run: as this process does, also when one of its machines dies in the middle."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark import cloudpickle

from benchmarks.generate import events as generated
from benchmarks.generate import write
from nemesis import history
from nemesis.checkers import select
from nemesis.checkers.checking import check
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.history import spark, spark_cluster
from nemesis.history.errors import SparkError
from nemesis.history.events import Kind
from nemesis.history.reader import open_history
from nemesis.history.remote import RemotePath
from nemesis.history.sources import EventSource
from tests.checkers.cut_histories import history_of, same
from tests.e2e.command import nemesis, wait_until
from tests.e2e.spark_cluster import SparkCluster
from tests.e2e.spark_cluster import spark_cluster as running_cluster
from tests.nemesis.judging.s3_server import CREDENTIALS, filesystem, s3_server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PYTHON = "PYSPARK_PYTHON"


@pytest.fixture(autouse=True)
def _own_context(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(PYTHON, sys.executable)
    spark.stop()
    yield
    spark.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """One for all; who ends its workers comes last."""
    directory = tmp_path_factory.mktemp("cluster") / "spark"
    with running_cluster(directory, "worker-1", "worker-2") as running:
        yield running


@dataclass(frozen=True)
class Lingers(Fold[int]):
    """Counts appends; each of its tasks says where it is and waits to be let go."""

    kinds = frozenset({Kind.APPEND.value})
    columns = ()
    marks: Path

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (
            Property(
                name="lingers",
                promise="It lingers.",
                unknown="Never.",
                source="A test.",
                check=cls,
                decided_from=frozenset(EventSource),
            ),
        )

    def reduce(self, segment: Segment) -> int:
        mark = f"{_worker_here()} {segment.rows[0]}"
        (self.marks / f"began {mark}").touch()
        deadline = time.monotonic() + 120
        while not (self.marks / "go on").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        (self.marks / f"ended {mark}").touch()
        return len(segment)

    def combine(self, a: int, b: int) -> int:
        return a + b

    def finish(self, summary: int) -> Results:
        return conclude(*self.properties(), checked=summary)

    def places(self, prefix: str) -> set[tuple[str, int]]:
        """(worker, first row) of the tasks that began or ended."""
        names = [mark.name.split() for mark in self.marks.glob(f"{prefix} *")]
        return {(worker, int(row)) for _, worker, row in names}


def _worker_here() -> str:
    """A task's directory is ``worker-N/APPLICATION/EXECUTOR``."""
    return next((part for part in Path.cwd().parts if part.startswith("worker-")), "here")


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have only what is shipped


def test_check_says_the_same_on_a_cluster_as_inline(cluster: SparkCluster, tmp_path: Path) -> None:
    run = write(tmp_path / "store", 150_000)
    outcomes = {}
    for engine in (["--spark-master", cluster.master], ["--engine", "inline"]):
        ran = nemesis(tmp_path, "check", str(run.path), *engine, "--json")
        assert ran.returncode in (0, 2), ran.stderr
        outcomes[engine[0]] = json.loads(ran.stdout)["outcome"]
    on_cluster, inline = outcomes.values()
    assert on_cluster["events"] == inline["events"] > 140_000
    assert on_cluster["results"] == inline["results"]
    assert on_cluster["problems"] == inline["problems"]
    assert {"hw-bounded", "lost-write"} <= {result["property"] for result in inline["results"]}


def test_a_history_in_an_object_store_is_read_by_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    directory = history_of(tmp_path, list(generated(2000)), list(range(200, 2000, 200)))
    inline = check(directory, select(), engine="inline")
    with s3_server() as server:
        store = filesystem(server)
        store.create_dir("bucket")
        for file in directory.glob("*.*"):
            with store.open_output_stream(f"bucket/{file.name}") as target:
                target.write(file.read_bytes())
        uri = f"s3://bucket/?scheme=http&region=us-east-1&endpoint_override={server}"
        there = check(open_history(RemotePath(uri)), select(), engine="spark")
    assert same(there) == same(inline)
    assert there.events > 1900


def test_a_worker_that_dies_in_the_middle_changes_no_verdict(
    cluster: SparkCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "marks").mkdir()
    lingers = Lingers(tmp_path / "marks")
    checks = [*select(), lingers]
    directory = history_of(tmp_path, list(generated(3000)), list(range(100, 3000, 100)))
    spark.context(cluster.master)
    wait_until(lambda: _workers() == 2, "two workers")
    shipped = set(spark.run_all(spark.context(), _where_our_code_is, range(16)))
    assert all(path.endswith("nemesis.zip/nemesis/history/__init__.py") for path in shipped)

    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(check, directory, checks, engine="spark")
        both = {"worker-1", "worker-2"}

        def has_begun_on_both() -> bool:
            assert not job.done(), job.result()
            return {worker for worker, _ in lingers.places("began")} == both

        wait_until(has_begun_on_both, "tasks on both")
        cluster.kill("worker-1")
        (tmp_path / "marks" / "go on").touch()
        outcome = job.result()
    torn = lingers.places("began") - lingers.places("ended")
    assert {worker for worker, _ in torn} == {"worker-1"}
    assert {("worker-2", row) for _, row in torn} <= lingers.places("ended")
    assert same(outcome) == same(check(directory, checks, engine="inline"))

    monkeypatch.setattr(spark_cluster, "WORKERS_WITHIN_S", 3.0)
    cluster.kill("worker-2")
    with pytest.raises(SparkError, match=r"no worker of spark://\S+ has offered itself for 3 s"):
        check(directory, checks, engine="spark")


def _workers() -> int:
    return spark_cluster.workers(spark.context())


def _where_our_code_is(_: int) -> str:
    return str(sys.modules[history.__name__].__file__)


def test_what_a_cluster_lacks_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_cluster, "WORKERS_WITHIN_S", 3.0)
    with running_cluster(tmp_path / "spark") as cluster:
        with pytest.raises(SparkError, match="has offered itself for 3 s: none is alive, or none"):
            spark.context(cluster.master)
        monkeypatch.setattr(spark_cluster, "WORKERS_WITHIN_S", 60.0)
        cluster.start_worker("worker-1")
        monkeypatch.setitem(os.environ, PYTHON, "no-such-python")
        with pytest.raises(SparkError, match=r"IOException: Cannot run program \"no-such-python\""):
            spark.context(cluster.master)


def test_a_master_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{nobody.getsockname()[1]}"
    run = write(tmp_path / "store", 100)
    ran = nemesis(tmp_path, "check", str(run.path), "--spark-master", master)
    assert ran.returncode == 254
    assert f"no Spark master answers at {master} (" in ran.stderr
    assert not run.history.exists()
