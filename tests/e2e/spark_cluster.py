"""A standalone Spark cluster on this machine, from PySpark's jars: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
MASTER_ADDRESS = "127.0.0.1"
WORKER_MEMORY = "600m"
STARTED_WITHIN_S = 60.0
_MASTER_IS_AT = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_IS_IN = "Successfully registered with master"


@dataclass
class SparkCluster:
    directory: Path
    master: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, main: str, *arguments: str, says: str) -> str:
        """Start a process that must say this; return what it has said."""
        log = self.directory / f"{name}.log"
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}"]
        daemon = {"SPARK_HOME": str(SPARK_HOME), "SPARK_DAEMON_MEMORY": "192m"}
        with log.open("wb") as file:
            self.processes[name] = subprocess.Popen(
                [*command, "--webui-port", "0", *arguments],
                env={**os.environ, **daemon, "SPARK_LOCAL_IP": MASTER_ADDRESS},
                stdout=file,
                stderr=file,
                cwd=self.directory,
            )
        deadline = time.monotonic() + STARTED_WITHIN_S
        while says not in (said := log.read_text(errors="replace")):
            assert self.processes[name].poll() is None, said
            assert time.monotonic() < deadline, f"{name} did not start: {said}"
            time.sleep(0.1)
        return said

    def start_worker(self, name: str) -> None:
        """One core each."""
        size = ("--cores", "1", "--memory", WORKER_MEMORY)
        work = ("--work-dir", str(self.directory / name))
        host = ("--host", MASTER_ADDRESS)
        self.start(name, "worker.Worker", *host, *size, *work, self.master, says=_WORKER_IS_IN)

    def kill(self, name: str) -> None:
        """As when its machine is gone: the process with all that it has started, at once."""
        process = self.processes.pop(name)
        try:
            family = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        process.kill()
        for child in family:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue
        process.wait()


@contextmanager
def spark_cluster(directory: Path, *workers: str) -> Iterator[SparkCluster]:
    """Yield a cluster of a master and these workers."""
    directory.mkdir()
    cluster = SparkCluster(directory)
    try:
        where = ("--host", MASTER_ADDRESS, "--port", "0")
        said = cluster.start("master", "master.Master", *where, says="elected leader")
        match = _MASTER_IS_AT.search(said)
        assert match is not None, said
        cluster.master = match[1]
        for name in workers:
            cluster.start_worker(name)
        yield cluster
    finally:
        for name in list(cluster.processes):
            cluster.kill(name)
