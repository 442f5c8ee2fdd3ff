"""Finding the way to a Spark cluster; that a real one works is in ``tests/e2e/test_spark_cluster.py``."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from nemesis.history.errors import SparkError
from nemesis.history.spark_cluster import driver_address


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_workers_reach_us_where_the_master_does(listening: str) -> None:
    assert driver_address(f"spark://{listening}") == "127.0.0.1"


def test_the_second_of_two_masters_will_do(closed: str, listening: str) -> None:
    assert driver_address(f"spark://{closed},{listening}") == "127.0.0.1"


def test_a_master_that_does_not_answer_is_named_with_the_reason(closed: str) -> None:
    with pytest.raises(SparkError, match=rf"answers at spark://{closed} \({closed}: .*refused"):
        driver_address(f"spark://{closed}")


@pytest.mark.parametrize("address", ["host:port", "127.0.0.1:99999"])
def test_what_is_no_address_is_named(address: str) -> None:
    with pytest.raises(SparkError, match=f"no Spark master answers at spark://{address}"):
        driver_address(f"spark://{address}")


@pytest.mark.parametrize("master", ["yarn", "k8s://cluster:443", "local-cluster[2,1,512]"])
def test_other_clusters_find_their_own_way(master: str) -> None:
    assert driver_address(master) is None
