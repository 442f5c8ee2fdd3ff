"""A history that was never written gives the rows, and the outcome, of the same events ingested from files."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random

import msgspec
import pytest

from nemesis.checkers import CHECKERS, select
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.history.events import Event
from nemesis.history.ingest import ingest
from nemesis.history.memory import history_of
from nemesis.history.reader import History, open_history
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.schema import SCHEMA
from nemesis.history.zookeeper_log import Operation, Transaction, TransactionType
from tests.checkers.anomalies import ANOMALIES
from tests.checkers.honest_cluster import NODES, HonestCluster


def honest(seed: int, steps: int = 80) -> list[Event]:
    rng = Random(seed)
    cluster = HonestCluster()
    for action, node in [(2, 1), (2, 2), (2, 3), (0, 1), (1, 2), (1, 3), (1, 2), (1, 3)]:
        cluster.step(action, node)
    for _ in range(steps):
        cluster.step(rng.randrange(12), rng.choice(NODES))
    return cluster.finish()


def spoiled(seed: int) -> list[Event]:
    """Many anomalies in one history."""
    rng = Random(seed)
    events = honest(seed)
    for spoils in ANOMALIES.values():
        for spoil in spoils:
            events = spoil(events, rng.choice) or events
    return events


def ingested(store: Path, events: list[Event]) -> History:
    """Write the events as processes write them, one file each, and ingest the files."""
    run = RunDirectory.create(store, RunInfo(scenario="s", seed=1, brokers=3))
    files: dict[str, list[bytes]] = defaultdict(list)
    for event in events:
        files[event.process].append(msgspec.json.encode(event) + b"\n")
    for process, lines in files.items():
        run.raw_file(process).write_bytes(b"".join(lines))
    ingest(run)
    return open_history(run.history)


def same(outcome: Outcome) -> object:
    return outcome.verdict, outcome.results, outcome.events, outcome.problems, outcome.engine


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_outcome_is_that_of_the_ingested_files(tmp_path: Path, seed: int) -> None:
    for events in (honest(seed), spoiled(seed)):
        stored, remembered = ingested(tmp_path, events), history_of(events)
        assert remembered.table().to_pylist() == stored.table().to_pylist()
        outcome = check(remembered, select())
        assert same(outcome) == same(check(stored, select()))
        assert [result.property for result in outcome.results] == list(CHECKERS)
    assert sum(result.verdict is Verdict.INVALID for result in outcome.results) > 9


def test_the_order_in_which_the_events_are_given_does_not_matter() -> None:
    events = honest(5)
    shuffled = Random(1).sample(events, len(events))
    assert history_of(shuffled).table().to_pylist() == history_of(events).table().to_pylist()


def test_rows_are_found_by_their_numbers() -> None:
    history = history_of(honest(5))
    listed = history.table().to_pylist()
    for number, row in history.rows([0, 7, len(listed) - 1]).items():
        assert row == {name: value for name, value in listed[number].items() if value is not None}
    assert history.rows([]) == {}
    assert history.events == len(listed)


def test_transactions_become_the_events_that_ingest_makes_of_a_log() -> None:
    elect = Transaction(
        session=7,
        cxid=1,
        zxid=3,
        wall_ms=1_000,
        type=TransactionType.MULTI,
        checksum=0,
        operations=(
            Operation(TransactionType.CREATE, "/controller", b'{"brokerid":2}', ephemeral=True),
            Operation(TransactionType.SET_DATA, "/controller_epoch", b"4", version=5),
        ),
    )
    started = Event(time=1, process="broker-2", kind="broker-started", node=2, incarnation=1)
    rows = history_of([started], [elect]).rows(range(3))
    assert [(row["kind"], row.get("path"), row["seq"]) for row in rows.values()] == [
        ("znode", "/controller", 0),
        ("znode", "/controller_epoch", 1),
        ("broker-started", None, 0),
    ]
    assert (rows[0]["controller_id"], rows[1]["controller_epoch"]) == (2, 4)


def test_a_problem_of_the_sources_makes_the_verdict_unknown() -> None:
    outcome = check(history_of(honest(4), problems=["broker-3 is missing"]), select(["hw-grows"]))
    assert (outcome.verdict, outcome.problems) == (Verdict.UNKNOWN, ("broker-3 is missing",))


def test_no_events_are_a_history_of_which_nothing_is_known() -> None:
    outcome = check(history_of([]), select())
    assert (outcome.verdict, outcome.events) == (Verdict.UNKNOWN, 0)
    assert history_of([]).table().schema.equals(SCHEMA)
