"""What clients record in generated histories: what was put wrong is found, and nothing else, however it is judged."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.histories.anomalies import Anomaly
from benchmarks.histories.client_anomalies import CLIENT_ANOMALIES
from benchmarks.histories.clients import CLIENTS, POLL_RECORDS, rows
from benchmarks.histories.generate import BROKERS, Part, in_memory
from benchmarks.histories.shape import Shape, stretches
from nemesis.checkers.checking import check
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.log import ClientLog
from nemesis.history.memory import MemoryRowGroup
from nemesis.history.reader import History

RECORDS = 3_000
SMALL = Shape(RECORDS, topics=1, partitions=2, hot_share=0.7)


class PartitionedClientLog(ClientLog):
    large = 0


class Walked(ClientLog):
    large = 10**9


def judged(history: History, check_: ClientLog, rows: int) -> list[Result]:
    """Judge the history in row groups of so many rows."""
    table = history.table()
    groups = [
        MemoryRowGroup(table.slice(start, rows), start) for start in range(0, table.num_rows, rows)
    ]
    return run_checks(groups, [check_])


@pytest.mark.parametrize("parts", [[CLIENTS], [BROKERS, CLIENTS]], ids=["clients", "traced"])
def test_nothing_is_found_in_a_history_that_is_right(parts: list[Part]) -> None:
    history, _ = in_memory(SMALL, parts=parts)
    for client_check in PartitionedClientLog(), Walked():
        results = {result.property: result for result in check(history, [client_check]).results}
        assert {result.verdict for result in results.values()} == {Verdict.VALID}
        assert results["lost-write"].checked == RECORDS
    assert judged(history, PartitionedClientLog(), 700) == judged(history, Walked(), 700)


@pytest.mark.parametrize("name", CLIENT_ANOMALIES)
def test_each_anomaly_is_named(name: str) -> None:
    history, [injected] = in_memory(SMALL, [Anomaly(name, 0, 1_234)], [BROKERS, CLIENTS])
    partitioned = judged(history, PartitionedClientLog(), 700)
    assert partitioned == judged(history, Walked(), 700)
    (result,) = [result_ for result_ in partitioned if result_.property == injected.property]
    assert injected.row in {event["row"] for finding in result.findings for event in finding.events}


def test_a_consumer_polls_in_the_order_of_its_log_however_little_its_last_poll_returns() -> None:
    last_polls = []
    for seed in range(400):
        shape = Shape(32 * sum(POLL_RECORDS) // 2, terms=1, seed=seed)
        [stretch] = stretches(shape, shape.all_partitions()[0], 0)
        table = rows(stretch)
        polls = table.filter(pc.equal(table["process"].cast(pa.string()), "consumer-0"))
        assert np.all(np.diff(polls["time"].to_numpy()) > 0)
        assert np.all(np.diff(polls["seq"].to_numpy()) > 0)
        last_polls.append(len(polls["offsets"][-1].as_py()))
    assert min(last_polls) == 1
