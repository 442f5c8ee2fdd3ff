"""A cluster on this machine that a whole file of tests shares."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from confluent_kafka.admin import AdminClient

from nemesis.interfaces.cluster import bootstrap
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.local import LocalRuntime
from tests.e2e.onlooker import until_complete


class LocalCluster:
    """Brokers, how clients find them, and their files."""

    def __init__(self, runtime: LocalRuntime, directory: Path, runner: asyncio.Runner) -> None:
        self.addresses = bootstrap(runtime.cluster)
        self.bootstrap = ",".join(map(str, self.addresses))
        self.client = {"bootstrap.servers": self.bootstrap}
        self.admin = AdminClient(self.client)
        self.zookeeper = runtime.cluster.zookeeper_connect()
        self.directory = directory
        self.runtime = runtime
        self.runner = runner


_Cluster = TypeVar("_Cluster", bound=LocalCluster)


@contextmanager
def running(
    kind: type[_Cluster],
    directory: Path,
    properties: Mapping[str, object],
    *,
    brokers: int = 3,
    log_dirs: int = 1,
    target: str = "reference",
) -> Iterator[_Cluster]:
    """Start brokers with these properties, wait until each serves, and stop them in the end."""
    runtime = LocalRuntime(
        ClusterConfig(
            broker_count=brokers,
            client_count=1,
            run_directory=directory,
            broker_properties=properties,
            log_dirs=log_dirs,
            target=target,
        )
    )
    with asyncio.Runner() as runner:
        runner.run(runtime.lifecycle.start())
        try:
            cluster = kind(runtime, directory, runner)
            until_complete(cluster.bootstrap)
            yield cluster
        finally:
            runner.run(runtime.lifecycle.stop())
