"""The workload `transactions` in simulation: transactions commit and abort, and producers are fenced, amid faults."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import pytest

from nemesis.checkers.framework.model import Verdict
from nemesis.faults import plan as plans
from nemesis.history.events import READ_COMMITTED, Event, Kind
from nemesis.testing import simulate_plan
from nemesis.testing.running import PlanRun
from nemesis.workloads.transactions import TransactionsOptions

PLAN = plans.decode(
    [
        {
            "at_s": 8.0,
            "fault": "kill",
            "target": 'leader("__transaction_state", 0)',
            "duration_s": 5.0,
        },
        {"at_s": 16.0, "fault": "pause-client", "target": "transactor-0", "duration_s": 6.0},
        {"at_s": 17.0, "fault": "kill-client", "target": "transactor-1", "duration_s": 2.0},
    ]
)


@cache
def run() -> PlanRun:
    return simulate_plan(PLAN, "transactions", seed=3, time_limit_s=34)


def events(f: str, kind: Kind = Kind.OK) -> list[Event]:
    return [event for event in run().simulated.events if event.f == f and event.kind == kind]


def sent_in(transactions: set[int | None]) -> set[int | None]:
    """The values that were sent in these transactions."""
    return {
        event.value for event in events("send", Kind.INVOKE) if event.transaction in transactions
    }


def decided(f: str) -> set[int | None]:
    return {event.transaction for event in events(f)}


def committed_values(process: str = "") -> set[int | None]:
    """What polls of committed records returned."""
    return {
        value
        for event in events("poll")
        if event.isolation == READ_COMMITTED and event.process.startswith(process)
        for value in event.values or ()
    }


def test_transactions_of_several_partitions_commit_and_abort() -> None:
    partitions = defaultdict(set)
    for event in events("send"):
        partitions[event.transaction].add((event.topic, event.partition))
    of_committed = Counter(len(partitions[number]) for number in decided("commit-transaction"))
    assert of_committed.keys() >= {1, 2, 3}
    assert len(decided("commit-transaction")) > 50
    assert len(decided("abort-transaction")) > 10


def test_committed_records_are_read_and_aborted_ones_are_not() -> None:
    committed = sent_in(decided("commit-transaction"))
    aborted = sent_in(decided("abort-transaction"))
    assert committed <= committed_values("committed"), "the last reads return all of them"
    assert aborted
    assert not aborted & committed_values()
    everything = {
        value for event in events("poll") if event.isolation is None for value in event.values or ()
    }
    assert aborted & everything, "other readers are given them"


def test_answers_name_the_aborted_transactions_and_where_records_are_stable() -> None:
    polls = [event for event in events("poll") if event.isolation == READ_COMMITTED]
    assert any(event.aborted for event in polls)
    stable = [event.last_stable_offset for event in polls]
    assert all(offset is not None and offset >= 0 for offset in stable)
    assert any((event.last_stable_offset or 0) < (event.high_watermark or 0) for event in polls)


def test_producers_that_share_an_id_fence_each_other_and_epochs_grow() -> None:
    refused = [
        event
        for kind in (Kind.FAIL, Kind.INFO)
        for f in ("add-partitions", "send", "commit-transaction")
        for event in events(f, kind)
        if event.error in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
    ]
    assert "transactor-0" in {event.process for event in refused}, "it was paused meanwhile"
    epochs: dict[tuple[str | None, int | None], list[int | None]] = defaultdict(list)
    for event in events("init-producer-id"):
        epochs[event.transactional_id, event.producer_id].append(event.producer_epoch)
    shared = epochs["writes-0", next(i for name, i in epochs if name == "writes-0")]
    assert len(shared) > 5
    assert len(shared) == len(set(shared))


def test_each_record_is_transformed_once() -> None:
    origins = [
        event.derived_from
        for event in events("send")
        if event.derived_from is not None and event.transaction in decided("commit-transaction")
    ]
    assert len(origins) > 20
    assert len(origins) == len(set(origins))
    assert set(origins) <= committed_values("transformer")


def test_transformers_share_the_partitions_of_a_topic_as_members_of_a_group() -> None:
    owners = defaultdict(set)
    for event in events("send-offset"):
        assert event.member
        assert (event.generation or 0) > 0
        owners[event.partition].add(event.member)
    assert owners.keys() == {0, 1, 2}
    assert all(len(members) > 1 for members in owners.values()), "partitions move"
    instances = {event.instance for event in events("send-offset")}
    assert instances == {None, "transforms-0"}


def test_the_offset_of_a_fenced_member_is_refused_and_its_transaction_aborted() -> None:
    refused = {
        event.transaction
        for event in events("send-offset", Kind.FAIL)
        if event.error in ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID")
    }
    assert refused
    assert not refused & decided("commit-transaction")
    assert refused & decided("abort-transaction")


def test_exactly_once_judges_inputs_that_several_members_have_passed() -> None:
    (judged,) = (item for item in run().outcome.results if item.property == "exactly-once")
    assert (judged.verdict, judged.findings) == (Verdict.VALID, ())
    assert judged.checked > 100


def test_output_is_committed_twice_where_coordinators_do_not_check_the_member() -> None:
    """A planted bug: the offsets of members that were fenced are accepted. The epoch of the producer does not help."""
    said = []
    for seed in (17, 3, *range(10, 13)):
        done = simulate_plan(
            PLAN,
            "transactions",
            seed=seed,
            time_limit_s=34,
            mutant="commits-unchecked",
            options={"producers": 1, "consumers": 1},
        )
        results = done.outcome.results
        said.append([item.property for item in results if item.verdict is Verdict.INVALID])
        if "exactly-once" in said[-1]:
            return
    pytest.fail(f"expected exactly-once, got {said}")


def test_transformers_need_a_second_topic() -> None:
    with pytest.raises(ValueError, match="topics: expected 2 or more with transformers, got 1"):
        TransactionsOptions(topics=1)


def test_topics_with_transactions_are_not_compacted() -> None:
    with pytest.raises(ValueError, match="keys: expected 0 with transactions, got 6"):
        TransactionsOptions(keys=6)


def test_the_session_of_a_transformer_ends_before_a_commit_in_doubt_does() -> None:
    said = r"session_timeout_ms: expected at most delivery_timeout_ms \(4000\) with transformers, got 4001"
    with pytest.raises(ValueError, match=said):
        TransactionsOptions(session_timeout_ms=4_001, delivery_timeout_ms=4_000)
    TransactionsOptions(session_timeout_ms=4_001, delivery_timeout_ms=4_000, transform_ids=0)


def test_a_coordinator_that_wakes_up_completes_what_its_successor_has_completed() -> None:
    """A correct cluster that was convicted: paused coordinators learned late that all their markers were written."""
    plan = plans.decode(
        [
            {
                "at_s": 6.0 * (number + 1),
                "fault": "pause",
                "target": f'leader("__transaction_state", {number % 2})',
                "duration_s": 3.5,
            }
            for number in range(6)
        ]
    )
    done = simulate_plan(plan, "transactions", seed=1, time_limit_s=46, checkers=["torn-markers"])
    assert done.outcome.verdict is Verdict.VALID
