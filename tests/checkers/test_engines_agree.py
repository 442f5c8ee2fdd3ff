"""All checks of the package, wherever a history is cut, on Spark and inline, over histories with many anomalies.

What is in ``CHECKERS`` and ``FOREIGN`` is tested here without being named: a new check needs no line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.checkers import CHECKERS, FOREIGN, select, select_foreign
from nemesis.checkers.checking import check
from nemesis.checkers.log import ClientLog
from nemesis.checkers.replication.hw_grows import HwGrows
from nemesis.history.events import Event
from nemesis.history.spark import stop
from tests.checkers.anomalies import ANOMALIES
from tests.checkers.cut_histories import history_of, same
from tests.checkers.foreign_histories import STEPS, foreign_events
from tests.checkers.histories import judge
from tests.checkers.honest_cluster import NODES, HonestCluster
from tests.checkers.honest_histories import WEIGHTED

STEADY = [(2, 1), (2, 2), (2, 3), *[(action, n) for action in (0, 1, 1) for n in NODES] * 4]


def spoiled(seed: int) -> list[Event]:
    """Many anomalies in one history; that of seed 0 goes well before."""
    rng = Random(seed)
    cluster = HonestCluster()
    for action, node in STEADY:
        cluster.step(action, node)
    for _ in range(rng.randrange(60) if seed else 0):
        cluster.step(rng.choice(WEIGHTED), rng.choice(NODES))
    events = cluster.finish()
    spoils = [spoil for spoils in ANOMALIES.values() for spoil in spoils]
    rng.shuffle(spoils)
    for spoil in spoils:
        with suppress(IndexError):  # there is no place for it
            events = spoil(events, rng.choice) or events
    return events


cuts = st.lists(st.integers(0, 10_000), min_size=1, max_size=12)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), cut=cuts)
def test_wherever_it_is_cut_every_check_says_the_same(seed: int, cut: list[int]) -> None:
    events = spoiled(seed)
    results, whole = judge(select(), events, cut), judge(select(), events)
    assert [name for name, result in results.items() if result != whole[name]] == []
    assert list(results) == list(CHECKERS)


@pytest.mark.parametrize("workload", FOREIGN)
@settings(max_examples=20)
@given(seed=st.integers(0, 1000), cut=cuts)
def test_wherever_a_foreign_history_is_cut_every_check_says_the_same(
    workload: str, seed: int, cut: list[int]
) -> None:
    events = list(foreign_events(workload, seed))
    checks = select_foreign(workload)
    assert judge(checks, events, cut) == judge(checks, events)


def test_every_foreign_workload_has_histories_in_which_something_is_found() -> None:
    assert set(STEPS) == set(FOREIGN)
    for workload in FOREIGN:
        checks = select_foreign(workload)
        results = [judge(checks, foreign_events(workload, seed)) for seed in range(5)]
        names = {name for item in results for name, result in item.items() if result.findings}
        assert names or not checks, f"nothing is ever found in {workload}"


@pytest.fixture(scope="module")
def _stop_spark() -> Iterator[None]:
    yield
    stop()


@pytest.mark.e2e
@pytest.mark.usefixtures("_stop_spark")
def test_both_engines_say_the_same(tmp_path: Path) -> None:
    directory = history_of(tmp_path, spoiled(0), [20, 41, 90, 130])
    inline = check(directory, select(), engine="inline")
    assert same(check(directory, select(), engine="spark")) == same(inline)
    assert [result.property for result in inline.results] == list(CHECKERS)
    assert sum(result.verdict == "invalid" for result in inline.results) > 12


@pytest.mark.e2e
@pytest.mark.usefixtures("_stop_spark")
@pytest.mark.parametrize("workload", FOREIGN)
def test_both_engines_say_the_same_of_foreign_histories(tmp_path: Path, workload: str) -> None:
    directory = history_of(tmp_path, list(foreign_events(workload, 1, 300)), [100, 101, 350])
    checks = select_foreign(workload)
    inline = check(directory, checks, engine="inline")
    assert same(check(directory, checks, engine="spark")) == same(inline)


@pytest.mark.e2e
@pytest.mark.usefixtures("_stop_spark")
def test_spark_can_be_started_again_in_one_process(tmp_path: Path) -> None:
    directory = history_of(tmp_path, spoiled(0), [60])
    outcomes = []
    for _ in range(2):
        outcomes.append(same(check(directory, select(), engine="spark")))
        stop()
    assert outcomes[0] == outcomes[1]


def test_select_makes_each_check_once_and_refuses_unknown_names() -> None:
    checks = select(["unseen", "lost-write", "hw-grows"])
    assert [type(check) for check in checks] == [HwGrows, ClientLog]
    with pytest.raises(KeyError, match="no-such-property"):
        select(["no-such-property"])
