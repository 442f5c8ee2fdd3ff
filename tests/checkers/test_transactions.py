"""What a correct cluster does with transactions is not convicted; smallest breaks are in ``test_properties``."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import client, history, poll, started
from nemesis.checkers.breaks.transactions_read import (
    ABORTED_READ,
    FENCED_PRODUCER,
    NO_PARTITION,
    READ_BEYOND_LSO,
    TORN_TRANSACTION,
    committed_poll,
    initialized,
    request,
    sent,
    went_on,
)
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event, Kind
from nemesis.history.memory import history_of

NAMES = ("aborted-read", "read-beyond-lso", "torn-transaction", "fenced-producer")
COMMIT, ABORT = "commit-transaction", "abort-transaction"


def results(*parts: Event | list[Event]) -> dict[str, Result]:
    check = CHECKERS["aborted-read"].check()
    return {
        result.property: result
        for result in run_checks(history_of(history(*parts)).row_groups, [check])
    }


def verdicts(*parts: Event | list[Event]) -> list[Verdict]:
    judged = results(*parts)
    return [judged[name].verdict for name in NAMES]


V, U, I = Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID  # noqa: E741


def test_a_committed_transaction_is_read_and_counted() -> None:
    judged = results(
        initialized(0, 0),
        sent(2, 1, 0),
        sent(4, 2, 1),
        request(6, COMMIT),
        committed_poll(8, 0, {0: 1, 1: 2}, 2),
    )
    assert [judged[name].verdict for name in NAMES] == [V, V, V, V]
    assert [judged[name].checked for name in NAMES] == [2, 2, 2, 3]
    assert judged["aborted-read"].numbers == {
        "transactions": 1,
        "committed": 1,
        "aborted": 0,
        "uncommitted_records_read_over": 0,
    }
    assert judged["fenced-producer"].numbers == {
        "fenced_producers": 0,
        "requests_of_fenced_producers": 0,
    }


def test_uncommitted_records_that_readers_have_passed_are_counted() -> None:
    judged = results(
        *(sent(0, 1, 0), sent(2, 2, 1), sent(4, 3, 2), request(6, ABORT)),
        *(sent(8, 4, 3, 2), request(10, COMMIT, 2, outcome="fail"), sent(12, 5, 5, 3)),
        *(committed_poll(14, 1, {}, 3), request(16, COMMIT, 3)),
    )
    assert judged["aborted-read"].numbers["uncommitted_records_read_over"] == 3


def test_a_committed_record_counts_once_a_reader_has_read_over_it() -> None:
    committed = [*sent(0, 1, 5), *sent(2, 2, 6), *request(4, COMMIT)]
    unread = results(committed, committed_poll(6, 0, {2: 9}, 4))["torn-transaction"]
    assert (unread.verdict, unread.checked) == (U, 0)
    assert results(committed, committed_poll(6, 0, {5: 1}, 5))["torn-transaction"].checked == 1


def test_polls_during_an_open_transaction_are_counted() -> None:
    open_one = [*sent(0, 1, 5), *committed_poll(2, 3, {}, 4), *committed_poll(4, 5, {}, 4)]
    judged = results(open_one, request(6, ABORT), committed_poll(8, 5, {}, 6))
    assert judged["read-beyond-lso"].numbers == {"polls_while_open": 2}


def test_requests_of_fenced_producers_are_counted() -> None:
    judged = results(
        *(initialized(0, 0), went_on(2, 0, 1), initialized(4, 2)),
        *(sent(6, 1, 0, epoch=2), request(8, COMMIT, epoch=1, outcome="fail")),
        *(request(10, COMMIT, epoch=0, outcome="info"), initialized(12, 3)),
    )
    assert judged["fenced-producer"].numbers == {
        "fenced_producers": 2,
        "requests_of_fenced_producers": 2,
    }


def test_a_commit_that_was_requested_before_the_fence_may_take_effect() -> None:
    """Only one that its producer requests once the next one has its epoch certainly does not."""
    opened, unknown = [*initialized(0, 0), *sent(2, 1, 0)], request(6, COMMIT, outcome="info")
    for fenced, expected in ((5, V), (4, I)):
        judged = results(opened, initialized(fenced, 1), unknown, committed_poll(8, 0, {0: 1}, 1))
        assert judged["aborted-read"].verdict is expected
    [finding] = judged["aborted-read"].findings
    assert len(finding.events) == len(("send", "poll", "init-producer-id", "commit-transaction"))


def test_a_new_producer_id_fences_the_former_one() -> None:
    former, added = initialized(0, 5), request(6, "add-partitions", epoch=5)
    for began, expected in ((5, V), (4, I)):
        judged = results(former, initialized(began, 0, 8), added)
        assert judged["fenced-producer"].verdict is expected
    judged = results(initialized(0, 0, 8), initialized(2, 0), request(6, "add-partitions"))
    assert judged["fenced-producer"].verdict is V


def test_nothing_is_decided_without_transactions() -> None:
    assert verdicts(poll(0, 0, {0: 1})) == [U, U, U, U]


@pytest.mark.parametrize("read", [{0: 1}, {}])
def test_a_commit_without_a_certain_outcome_may_take_effect_or_not(read: dict[int, int]) -> None:
    unknown = request(2, COMMIT, outcome="info")
    assert I not in verdicts(sent(0, 1, 0), unknown, committed_poll(4, 0, read, 1))


def test_readers_of_all_records_are_given_aborted_and_open_ones() -> None:
    aborted = request(2, ABORT)
    assert I not in verdicts(sent(0, 1, 0), aborted, poll(4, 0, {0: 1}, last_offset=1))
    assert I not in verdicts(sent(0, 1, 0), poll(4, 0, {0: 1}), request(6, COMMIT))


def test_a_reader_may_see_the_commit_before_its_producer_is_answered() -> None:
    commit = request(2, COMMIT)
    commit[1].time = 9
    assert I not in verdicts(sent(0, 1, 0), commit[:1], committed_poll(4, 0, {0: 1}, 0), commit[1:])


def test_records_below_an_open_transaction_are_read() -> None:
    assert I not in verdicts(sent(0, 1, 5), committed_poll(2, 4, {4: 9}, 4), request(4, ABORT))


@pytest.mark.parametrize(("start", "verdict"), [(5, I), (6, V)])
def test_a_leader_may_have_deleted_what_opened_a_transaction(start: int, verdict: Verdict) -> None:
    """DeleteRecords or retention took it, and the state of the producer with it at a replica that came later."""
    past = committed_poll(4, 7, {7: 9}, 7, log_start_offset=start)
    committed = [*sent(2, 9, 7, 2, epoch=1), *request(3, COMMIT, 2, epoch=1)]
    assert verdicts(sent(0, 1, 5), committed, past, request(6, ABORT))[1] is verdict
    left = committed_poll(4, 7, {7: 9}, 7, log_start_offset=6)
    assert verdicts(sent(0, 1, 5), sent(1, 2, 6), committed, left, request(6, ABORT))[1] is I


def test_a_transaction_without_an_acknowledged_end_may_have_been_aborted_before() -> None:
    """A time-out, or the next producer of the transactional id, may have ended it."""
    over = committed_poll(2, 6, {6: 9}, 6)
    for outcome in ("fail", "info"):
        assert I not in verdicts(sent(0, 1, 5), over, request(4, COMMIT, outcome=outcome))
    assert I not in verdicts(sent(0, 1, 5), over)


@pytest.mark.parametrize(("version", "verdict"), [(0, I), (1, I), (2, V)])
def test_with_version_2_an_acknowledged_abort_may_repeat_that_of_the_coordinator(
    version: int, verdict: Verdict
) -> None:
    asked = client(0, "transactions-setup", "invoke", "transaction-version", 0, **NO_PARTITION)
    answered = client(
        1, "transactions-setup", "ok", "transaction-version", 0, count=version, **NO_PARTITION
    )
    passed_over = [
        *sent(10, 1, 0),
        *sent(12, 2, 1, 2, epoch=1),
        *request(14, COMMIT, 2, epoch=1),
        *committed_poll(16, 0, {1: 2}, 1),
        *request(18, ABORT),
    ]
    assert verdicts([asked, answered], passed_over)[1] is verdict


def at_broker(node: int, events: list[Event]) -> list[Event]:
    """These events of a request that this broker has answered."""
    for event in events:
        event.node = node
    return events


@pytest.mark.parametrize(
    ("added_at", "first_end", "verdict"),
    [(2, ABORT, V), (1, ABORT, I), (2, COMMIT, I)],
)
def test_a_former_coordinator_may_acknowledge_an_abort_from_memory(
    added_at: int, first_end: str, verdict: Verdict
) -> None:
    """Broker 1 knows the abort of transaction 1; its successor, broker 2, has aborted transaction 2 by time-out."""
    first = sent(0, 1, 0), at_broker(1, request(2, first_end))
    second = at_broker(added_at, request(4, "add-partitions", 2)), sent(6, 2, 2, 2)
    passed_over = [*sent(8, 3, 3, 3, epoch=5), *request(10, COMMIT, 3, epoch=5)]
    read = committed_poll(12, 3, {3: 3}, 4)
    aborted = at_broker(1, request(14, ABORT, 2))
    assert verdicts(*first, *second, passed_over, read, aborted)[1] is verdict


@pytest.mark.parametrize(("fenced_at", "verdict"), [(2, U), (1, I)])
def test_a_former_coordinator_may_acknowledge_partitions_from_memory(
    fenced_at: int, verdict: Verdict
) -> None:
    """It holds transaction 1 for open, which its successor has ended."""
    former = initialized(0, 0), at_broker(1, request(2, "add-partitions")), sent(4, 1, 0)
    ended = at_broker(2, request(6, COMMIT)), at_broker(fenced_at, initialized(8, 1))
    late = at_broker(1, request(10, "add-partitions", 2))
    judged = results(*former, *ended, late)["fenced-producer"]
    assert (judged.verdict, len(judged.findings)) == (verdict, 1)
    first = results(former[0], ended[1], late)["fenced-producer"]
    assert first.verdict is I


def test_a_record_that_is_acknowledged_after_the_poll_has_begun_proves_nothing() -> None:
    over = committed_poll(0, 6, {6: 9}, 6)
    over[1].time = 5
    assert I not in verdicts(over[:1], sent(1, 1, 5), over[1:], request(6, ABORT))


def test_a_poll_that_ends_before_a_record_does_not_pass_over_it() -> None:
    committed = [*sent(0, 1, 5), *request(2, COMMIT)]
    assert I not in verdicts(committed, committed_poll(4, 0, {2: 9}, 4))
    assert I not in verdicts(committed, committed_poll(4, 6, {6: 9}, 6))


def test_a_poll_that_ended_before_a_record_was_sent_has_not_passed_over_it() -> None:
    """The producer named a topic that was deleted: its record is in the topic that came after."""
    before = committed_poll(0, 0, {6: 9}, 6)
    assert verdicts(before, sent(4, 1, 5), request(6, COMMIT))[2] is U
    assert verdicts(sent(4, 1, 5), request(6, COMMIT), committed_poll(8, 0, {6: 9}, 6))[2] is I


def test_compaction_may_remove_records_with_keys() -> None:
    keyed = sent(0, 1, 0)
    for event in keyed:
        event.key = 7
    assert I not in verdicts(keyed, request(2, COMMIT), committed_poll(4, 0, {2: 9}, 2))


def test_a_request_that_was_sent_before_the_newer_producer_was_answered_may_be_accepted() -> None:
    early = sent(2, 1, 5)
    early[1].time = 6
    assert I not in verdicts(initialized(0, 0), early[:1], initialized(3, 1), early[1:])


def test_a_producer_that_is_refused_keeps_the_promise() -> None:
    for f in (COMMIT, ABORT, "add-partitions"):
        refused = request(4, f, outcome="fail")
        assert I not in verdicts(initialized(0, 0), initialized(2, 1), refused)


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        *((each, "aborted-read") for each in ABORTED_READ),
        *((each, "read-beyond-lso") for each in READ_BEYOND_LSO),
        *((each, "torn-transaction") for each in TORN_TRANSACTION),
    ],
)
def test_where_acknowledged_records_may_be_lost_it_is_reported_and_allowed(
    broken: tuple[Event, ...], name: str
) -> None:
    check = CHECKERS[name].check()
    rows = history_of((*history(started(0, 1, unclean=True)), *broken)).row_groups
    judged = {result.property: result for result in run_checks(rows, [check])}
    assert judged[name].verdict is V
    assert judged[name].findings


@pytest.mark.parametrize(
    ("broken", "expected"), [(FENCED_PRODUCER[0], V), *((each, I) for each in FENCED_PRODUCER[1:])]
)
def test_unclean_elections_may_lose_an_epoch_in_a_partition_and_none_in_a_coordinator(
    broken: tuple[Event, ...], expected: Verdict
) -> None:
    check = CHECKERS["fenced-producer"].check()
    rows = history_of((*history(started(0, 1, unclean=True)), *broken)).row_groups
    judged = {result.property: result for result in run_checks(rows, [check])}
    assert judged["fenced-producer"].verdict is expected


def cut(at_ms: int, partition: str, kind: str = "fault-invoke", detail: str = "") -> Event:
    """A power cut that strikes the last replica in the ISR of a partition."""
    said = detail or f'{{"last_in_isr": ["{partition}"]}}'
    about: dict[str, Any] = {"fault": "power-cut", "fault_id": 1, "detail": said}
    return Event(time=at_ms, process="nemesis", kind=Kind(kind), seq=at_ms, **about)


def test_epochs_that_a_power_cut_may_have_lost_may_be_given_again() -> None:
    again = initialized(10, 0), sent(12, 1, 5), initialized(14, 0)
    for partition, expected in (("__transaction_state-0", V), ("t-0", I)):
        judged = results(cut(1, partition), *again)
        assert judged["fenced-producer"].verdict is expected
        assert judged["fenced-producer"].findings


def test_a_leader_may_lose_an_epoch_with_the_log_of_its_partition() -> None:
    late = initialized(0, 0), initialized(2, 1), sent(4, 1, 5)
    for partition, expected in (("t-0", V), ("t-1", I), ("t-01", I)):
        assert results(cut(3, partition), *late)["fenced-producer"].verdict is expected


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        pytest.param([cut(1, "t-0")], V, id="the partition may have lost records"),
        pytest.param([cut(1, "__transaction_state-1")], V, id="its end may be lost"),
        pytest.param([cut(1, "u-0")], I, id="another partition was struck"),
        pytest.param([cut(500, "t-0")], I, id="it was so before"),
        pytest.param([cut(1, "t-0"), cut(2, "t-0", "fault-skipped", "{}")], I, id="it was skipped"),
        pytest.param(
            [
                cut(1, "t-0"),
                cut(2, "t-0", "fault-applied", '{"broker-1": {"lost_bytes": 0, "lost_names": []}}'),
            ],
            I,
            id="nothing was lost",
        ),
        pytest.param(
            [cut(1, "t-0"), cut(2, "t-0", "fault-applied", '{"broker-1": {"lost_bytes": 9}}')],
            V,
            id="something was lost",
        ),
    ],
)
def test_a_finding_is_allowed_for_the_losses_that_it_rests_on(
    faults: list[Event], expected: Verdict
) -> None:
    read = sent(10, 1, 5), request(12, ABORT), committed_poll(14, 5, {5: 1}, 6)
    assert results(*faults, *read)["aborted-read"].verdict is expected


def test_an_injected_break_among_correct_transactions_is_found() -> None:
    correct = [
        event
        for number in range(20)
        for event in (
            *sent(6 * number, 2 * number, 3 * number, number),
            *request(6 * number + 2, COMMIT, number),
            *committed_poll(6 * number + 4, 3 * number, {3 * number: 2 * number}, 3 * number + 1),
        )
    ]
    assert verdicts(correct) == [V, V, V, V]
    aborted = [*sent(200, 100, 80, 50), *request(202, ABORT, 50)]
    assert verdicts(correct, aborted, committed_poll(204, 80, {80: 100}, 81)) == [I, V, V, V]
    passed = [*sent(200, 100, 80, 50), *request(202, COMMIT, 50)]
    assert verdicts(correct, passed, committed_poll(204, 79, {}, 81)) == [V, V, I, V]
