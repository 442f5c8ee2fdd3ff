"""All checks of the package, on Spark and inline, over histories in which each anomaly was put."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from checkers import CHECKERS, select
from checkers.engine import check
from history.events import Event
from history.spark import stop
from tests.checkers.anomalies import ANOMALIES
from tests.checkers.honest_cluster import NODES, HonestCluster
from tests.checkers.test_engine import history_of, same


def spoiled() -> list[Event]:
    """Many anomalies in one history."""
    rng = Random(7)
    cluster = HonestCluster()
    for action, node in [
        (2, 1),
        (2, 2),
        (2, 3),
        *[(action, n) for action in (0, 1, 1) for n in NODES] * 4,
    ]:
        cluster.step(action, node)
    events = cluster.finish()
    for spoils in ANOMALIES.values():
        for spoil in spoils:
            events = spoil(events, rng.choice) or events
    return events


@pytest.fixture(scope="module")
def _stop_spark() -> Iterator[None]:
    yield
    stop()


@pytest.mark.e2e
@pytest.mark.usefixtures("_stop_spark")
def test_both_engines_say_the_same(tmp_path: Path) -> None:
    directory = history_of(tmp_path, spoiled(), [20, 41, 90, 130])
    inline = check(directory, select(), engine="inline")
    assert same(check(directory, select(), engine="spark")) == same(inline)
    assert [result.property for result in inline.results] == list(CHECKERS)
    assert sum(result.verdict == "invalid" for result in inline.results) > 12


@pytest.mark.e2e
@pytest.mark.usefixtures("_stop_spark")
def test_spark_can_be_started_again_in_one_process(tmp_path: Path) -> None:
    directory = history_of(tmp_path, spoiled(), [60])
    outcomes = []
    for _ in range(2):
        outcomes.append(same(check(directory, select(), engine="spark")))
        stop()
    assert outcomes[0] == outcomes[1]


def test_select_makes_each_check_once_and_refuses_unknown_names() -> None:
    assert [check.name for check in select(["unseen", "lost-write", "hw-grows"])] == [
        "hw-grows",
        "client-log",
    ]
    with pytest.raises(KeyError, match="no-such-property"):
        select(["no-such-property"])
